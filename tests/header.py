#!/usr/bin/env python3
"""C headers: each kernel and sequence of schedules/ and of tests/corpus as a header compiles without a warning, as C99
and as C++17, with nothing but a few declarations of the driver (tests/header/cuda.h; with the toolkit's cuda.h too
where there is one), and its functions ask the driver for what the library's own launcher does: the same maps,
arguments, grids and workspaces, in the same order. Both go by one launcher: what they ask for is held to
tests/golden/launches.txt, a line for each kernel; --update writes it.

  header.py --schedc build/schedc --expect build/tests/expect_launch [--update] [FILE …]

Where there is no NVRTC, the kernels are counted as skipped.
"""
import argparse
import glob
import hashlib
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
GOLDEN = os.path.join(HERE, "golden", "launches.txt")
TOOLKIT = os.path.join(os.environ.get("CUDA_HOME") or "/usr/local/cuda", "include")
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
LANGUAGES = [("c", "-std=c99"), ("c++", "-std=c++17")]
SIZES = {"B": 2, "M": 200, "H": 4, "N": 320, "G": 2, "K": 192, "F": 320, "TQ": 200, "TK": 328}
USAGE, MISSING = 2, 3  # exit codes: the command line is at fault; the machine lacks something


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, encoding="utf-8")


def interface(header):
    """Tensors with their extents, dimensions and scalars of a header's arguments."""
    fields = re.search(r"typedef struct \w+_args \{(.*?)\n\} ", header, re.S).group(1)
    tensors = {name: shape for name, shape in re.findall(r"CUdeviceptr (\w+);\s*/\* \w+\[(.*?)\], ", fields)}
    dims = re.findall(r"^\s*int64_t (\w+);", fields, re.M)
    scalars = re.findall(r"^\s*(float|int32_t) (\w+);", fields, re.M)
    return tensors, dims, scalars


def own(name):
    """The schedule's name for it: those that C++ or the emitter use have a '_' more."""
    return name[:-1] if name.endswith("_") else name


def extents(shape, dims):
    dims = {own(name): value for name, value in dims.items()}

    def cdiv(a, b):
        return -(-a // b)

    def where(cond, a, b):
        return a if cond else b

    known = {"cdiv": cdiv, "where": where}
    return [int(eval(e.replace("/", "//"), known, dims)) for e in re.split(r",\s*(?![^()]*\))", shape)]


def strides(extent, pad):
    out = [1]
    for n in extent[:0:-1]:
        out.append(out[-1] * max(n, 1) + (pad if len(out) == 1 else 2 * pad))
    return out[::-1]


def trials(tensors, dims):
    """Dimensions, and the padding of rows, and tensors that are broadcast."""
    usual = {d: SIZES.get(d, 64) for d in dims}
    yield usual, 0
    yield usual, 64
    yield {**usual, **{d: 1 for d in dims if d in "BMN"}}, 16
    yield {**usual, **{d: 0 for d in dims if d in ("N", "K")}}, 0
    yield {**usual, **{d: 0 for d in dims if d in ("M", "TQ")}}, 0


def arguments(tensors, dims, scalars, pad):
    """As words for expect_launch, and as statements in C."""
    words, code = [], []
    for i, (name, shape) in enumerate(tensors.items()):
        extent = extents(shape, dims)
        stride = strides(extent, pad)
        at = 0x10000000 * (i + 1)
        words.append(f"{own(name)}={at:x}:{','.join(map(str, extent))}:{','.join(map(str, stride))}")
        code.append(f"a.{name} = 0x{at:x};")
        code += [f"a.{name}_stride[{d}] = {s};" for d, s in enumerate(stride)]
    code += [f"a.{name} = {value};" for name, value in dims.items()]
    for kind, name in scalars:
        value = 0.25 if kind == "float" else 130
        words.append(f"{own(name)}={value}")
        code.append(f"a.{name} = {value};")
    return words, code


# Streams keep their counter as long as no 256 others have come since; captured launches have one each.
COUNTERS = """
extern int capturing;
static int counters(NAME_kernel *k) {
  CUdeviceptr first, other, at;
  char *stream = NULL;
  int i;
  if (scl_counter(&k->kernel, NULL, &first) || scl_counter(&k->kernel, (CUstream)(stream + 1), &other) || first == other) return 1;
  for (i = 0; i < 1000; i++)
    if (scl_counter(&k->kernel, NULL, &at) || at != first) return 2;
  for (i = 2; i < 256; i++)
    if (scl_counter(&k->kernel, (CUstream)(stream + i), &at) || at == first || at == other) return 3;
  if (scl_counter(&k->kernel, NULL, &at) || at != first) return 4;
  if (scl_counter(&k->kernel, (CUstream)(stream + 256), &at) || at != other) return 5;
  for (capturing = 1, other = at, i = 0; i < 3840; i++, other = at)
    if (scl_counter(&k->kernel, NULL, &at) || at == first || at == other) return 6;
  return capturing = 0;
}
"""


def check(args, folder, path, kernel, golden):
    """None: no NVRTC; else what is wrong."""
    header = os.path.join(folder, kernel + ".h")
    done = run(args.schedc, "build", path, kernel, "--lenient", "-o", header)
    if done.returncode == MISSING:
        return None
    if done.returncode:
        return done.stdout
    text = open(header, encoding="utf-8").read()
    name = re.search(r"typedef struct (\w+)_args", text).group(1)
    tensors, dims, scalars = interface(text)
    source = os.path.join(folder, "main.c")
    expected, cases = [], []
    for sizes, pad in trials(tensors, dims):
        words, code = arguments(tensors, sizes, scalars, pad)
        code.append("a.workspace = 0x6000000;" if f"{name}_workspace(" in text else "")
        done = run(args.expect, path, kernel, *words)
        if done.returncode:
            return f"expect_launch {words}: {done.stdout}"
        functions, asked = done.stdout.split("\n", 1)
        expected.append(asked)
        cases.append(" ".join(code))
    name_of_all, digest = f"{os.path.relpath(path, ROOT)} {kernel}", hashlib.sha256("".join(expected).encode()).hexdigest()[:16]
    if args.update:
        golden[name_of_all] = digest
    elif name_of_all not in golden:
        return "what it asks the driver for is not in tests/golden/launches.txt (--update puts it there)"
    elif golden[name_of_all] != digest:
        return "it asks the driver for something else than before (--update, if that is meant)"
    with open(source, "w", encoding="utf-8") as f:
        counters = COUNTERS.replace("NAME", name) if "{SCL_PUT_COUNTER" in text else ""
        call = "if (argc == 1) return counters(&k);\n  " if counters else ""
        size = f"{name}_workspace(&a)" if f"{name}_workspace(" in text else "(size_t)0"
        f.write(f'#include "{header}"\n#include <stdlib.h>\n#include <stdio.h>\n{counters}'
                f"int main(int argc, char **argv) {{\n  {name}_kernel k;\n  {name}_args a;\n  memset(&a, 0, sizeof a);\n"
                f"  switch (argc > 1 ? atoi(argv[1]) : 0) {{\n"
                + "".join(f"    case {i}: {code} break;\n" for i, code in enumerate(cases))
                + f'  }}\n  if ({name}_load(&k)) return 1;\n'
                f'  {call}if ({name}_launch(&k, &a, NULL)) printf("refused\\n");\n'
                f'  else printf("workspace %zu\\n", {size});\n'
                f"  {name}_unload(&k);\n  return 0;\n}}\n")
    program = os.path.join(folder, "main")
    known = ", ".join(f'{{"{f}", {block}, {maps}}}' for f, block, maps in zip(*[iter(functions.split())] * 3))
    done = run("gcc", "-std=c99", *WARNINGS, "-I", os.path.join(HERE, "header"), f"-DFUNCTIONS={known}",
               source, os.path.join(HERE, "header", "driver.c"), "-o", program)
    if done.returncode:
        return done.stdout
    includes = [["-I", os.path.join(HERE, "header")]]
    if os.path.exists(os.path.join(TOOLKIT, "cuda.h")):
        includes.append(["-isystem", TOOLKIT])
    for language, standard in LANGUAGES:
        for include in includes:
            done = run("gcc", "-x", language, standard, *WARNINGS, *include, "-fsyntax-only", source)
            if done.returncode:
                return done.stdout
    done = run(program) if counters else done
    if done.returncode:
        return f"tile counters: fault {done.returncode}"
    for i, want in enumerate(expected):
        got = run(program, str(i)).stdout
        if got != want:
            return f"launch {i}\nexpected:\n{want}\nasked of the driver:\n{got}"
    return ""


ALONE = """#include "{name}.h"
#include <stdio.h>
int {name}(void) {{
  {name}_kernel k;
  {name}_args a;
  CUresult e;
  memset(&a, 0, sizeof a);
  {code}
  e = {name}_load(&k);
  if (!e) e = {name}_launch(&k, &a, NULL);
  {name}_unload(&k);
  return e;
}}
"""


def check_together(args, folder):
    """Two headers of one kernel with different parameters, by --name: in one file they ask for what each asks for alone. By
    one name they are refused. None: no NVRTC; else what is wrong."""
    path, variants, texts = os.path.join(ROOT, "schedules", "copy.sched"), {"small": "BM=16", "large": "BM=32"}, []
    done = run(args.expect, path, "copy", "X=10000000:200,320:320,1", "Y=20000000:200,320:320,1")
    known = "-DFUNCTIONS=" + '{{"{}", {}, {}}}'.format(*done.stdout.split("\n", 1)[0].split())
    include, driver = ["-I", os.path.join(HERE, "header"), "-I", folder], os.path.join(HERE, "header", "driver.c")
    for name, param in variants.items():
        done = run(args.schedc, "build", path, "-p", param, "--name", name, "-o", os.path.join(folder, name + ".h"))
        if done.returncode:
            return None if done.returncode == MISSING else done.stdout
        tensors, dims, scalars = interface(open(os.path.join(folder, name + ".h"), encoding="utf-8").read())
        _, code = arguments(tensors, {"M": 200, "N": 320}, scalars, 0)
        texts.append(ALONE.format(name=name, code=" ".join(code)))

    def asked(text, calls, *options):
        with open(os.path.join(folder, "main.c"), "w", encoding="utf-8") as f:
            f.write(text + f"int main(void) {{ return {calls}; }}\n")
        built = run("gcc", *options, *WARNINGS, *include, known, os.path.join(folder, "main.c"), driver, "-o",
                    os.path.join(folder, "main"))
        return built.stdout + run(os.path.join(folder, "main")).stdout if not built.returncode else built.stdout
    small, large = asked(texts[0], "small()", "-std=c99"), asked(texts[1], "large()", "-std=c99")
    if small == large or not small.count("launch copy") == large.count("launch copy") == 1:
        return f"alone:\n{small}{large}"
    if asked("".join(texts), "small() || large()", "-std=c99") != small + large:
        return "together: " + asked("".join(texts), "small() || large()", "-std=c99")
    for language, standard in LANGUAGES:
        done = run("gcc", "-x", language, standard, *WARNINGS, *include, "-fsyntax-only", os.path.join(folder, "main.c"))
        if done.returncode:
            return done.stdout
    run(args.schedc, "build", path, "-p", "BM=32", "--name", "small", "-o", os.path.join(folder, "other.h"))
    wrong = asked('#include "small.h"\n#include "other.h"\n', "0", "-std=c99")
    return "" if "another kernel is called small: build one with --name" in wrong else f"of one name: {wrong}"


def check_ranges(args, folder):
    """Dimensions that fit in 32 bits, and of which a product does or does not: the header refuses what the library does. None:
    no NVRTC; else what is wrong."""
    path, header = os.path.join(HERE, "header", "wide.sched"), os.path.join(folder, "wide.h")
    done = run(args.schedc, "build", path, "-o", header)
    if done.returncode:
        return None if done.returncode == MISSING else done.stdout
    tensors, dims, scalars = interface(open(header, encoding="utf-8").read())
    include, driver = ["-I", os.path.join(HERE, "header"), "-I", folder], os.path.join(HERE, "header", "driver.c")
    for sizes, fits in (({"M": 200, "N": 320}, True), ({"M": 40000, "N": 50000}, True), ({"M": 40000, "N": 60000}, False)):
        words, code = arguments(tensors, sizes, scalars, 0)
        library = run(args.expect, path, "wide", *words)
        if ("refused" not in library.stdout) != fits:
            return f"the library with {sizes}: {library.stdout}"
        known = "-DFUNCTIONS=" + '{{"{}", {}, {}}}'.format(*library.stdout.split("\n", 1)[0].split()[-3:])
        with open(os.path.join(folder, "main.c"), "w", encoding="utf-8") as f:
            f.write(ALONE.format(name="wide", code=" ".join(code)) + "int main(void) { return wide() != 0; }\n")
        built = run("gcc", "-std=c99", *WARNINGS, *include, known,
                    os.path.join(folder, "main.c"), driver, "-o", os.path.join(folder, "main"))
        done = built if built.returncode else run(os.path.join(folder, "main"))
        if built.returncode or (done.returncode == 0) != fits or ("launch" in done.stdout) != fits:
            return f"the header with {sizes}: {done.stdout}"
    return ""


def main():
    files = sorted(glob.glob(os.path.join(ROOT, "schedules", "*.sched"))) + [
        os.path.join(ROOT, "tests", *name) for name in (("corpus", "dealt.sched"), ("header", "twice.sched"))]
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", required=True)
    parser.add_argument("--expect", required=True)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("files", nargs="*", default=files)
    args = parser.parse_args()
    with open(GOLDEN, encoding="utf-8") as f:
        golden = dict(line.rsplit(" ", 1) for line in f.read().splitlines())
    passed = failed = skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("SCHEDC_CACHE", os.path.join(folder, "cache"))  # nobody else's machine code
        done = run(args.schedc, "build", args.files[0], "--debug-waits", "-o", os.path.join(folder, "waits.h"))
        if done.returncode != USAGE or "--debug-waits" not in done.stdout:
            failed += 1
            print(f"FAIL --debug-waits: exit code {done.returncode}: {done.stdout}")
        for name, alone in (("two headers", check_together), ("ranges", check_ranges)):
            wrong = alone(args, folder)
            passed, failed, skipped = passed + (wrong == ""), failed + bool(wrong), skipped + (wrong is None)
            if wrong:
                print(f"FAIL {name}: {wrong}")
        for path in args.files:
            for kernel in re.findall(r"^(?:kernel|sequence)\s+(\w+)", open(path, encoding="utf-8").read(), re.M):
                wrong = check(args, folder, path, kernel, golden)
                passed, failed, skipped = passed + (wrong == ""), failed + bool(wrong), skipped + (wrong is None)
                if wrong:
                    print(f"FAIL {os.path.basename(path)} {kernel}: {wrong}")
    gone = [name for name in golden if not os.path.exists(os.path.join(ROOT, name.split()[0]))]
    if gone and not args.update:
        failed += 1
        print(f"FAIL launches.txt has schedules that are gone: {', '.join(gone)}")
    if args.update:
        golden = {name: digest for name, digest in golden.items() if name not in gone}
        with open(GOLDEN, "w", encoding="utf-8") as f:
            f.write("".join(f"{name} {digest}\n" for name, digest in sorted(golden.items())))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
