#!/usr/bin/env python3
"""include/schedc.h keeps its own rules, and its examples are one program that runs.

  interface.py --schedc build/release/schedc

Every function stands under a comment. Every struct begins with `size`, and has an initialiser with a value for each member,
or is one of those that the head of the file says never change, and has not changed. The lines that are indented under
`Example` are put together in their order, those that begin with `static` outside of main; after each, all must be well. It is
compiled as C and as C++, with the library and the model of a GPU beside schedc, and run on that.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FROZEN = {"schedc_tensor": 128, "schedc_scalar": 16, "schedc_param": 16, "schedc_dim": 16, "schedc_note": 32,
          "schedc_range": 24, "schedc_allocator": 24}  # bytes, with pointers of 64 bits
HANDED_OUT = {"schedc_diagnostic"}  # by the library alone: callers have none to set up
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", os.path.join(ROOT, "include")]

# What stands around the examples: a CUDA context that is current, memory on the GPU, and at the end a look at the results.
BEGIN = """#include <stdio.h>
#include <string.h>
#include <schedc.h>
#ifdef __cplusplus
extern "C" {
#endif
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxPushCurrent_v2(void *context);
int cuMemAlloc_v2(uint64_t *at, size_t bytes);
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes);
#ifdef __cplusplus
}
#endif
"""
MAIN = """
int main(void) {
  void *cuda = NULL, *stream = NULL;
  uint64_t x_on_gpu = 0, y_on_gpu = 0;
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&cuda, 0) || cuCtxPushCurrent_v2(cuda)) return 3;
  if (cuMemAlloc_v2(&x_on_gpu, 12800) || cuMemAlloc_v2(&y_on_gpu, 12800)) return 3;
"""
BEFORE = {
    "schedc_gpu_run": "  schedc_poison(&tensors[1]);\n",
    "schedc_launch": "  if (cuMemcpyHtoD_v2(x_on_gpu, x, sizeof x)) return 3;\n",
}
AFTER = {
    "schedc_run_cpu": "  if (memcmp(x, y, sizeof x)) return puts(\"run_cpu: Y is not X\"), 1;\n",
    "schedc_gpu_run": "  if (memcmp(x, y, sizeof x)) return puts(\"gpu_run: Y is not X\"), 1;\n",
    "schedc_launch": "  memset(y, 0, sizeof y);\n  if (cuMemcpyDtoH_v2(y, y_on_gpu, sizeof y)) return 3;\n"
                     "  if (memcmp(x, y, sizeof x)) return puts(\"launch: Y is not X\"), 1;\n",
    "schedc_compare": "  if (!error.pass) return puts(\"compare: no pass\"), 1;\n",
}
END = """  schedc_unload(loaded);
  schedc_kernel_free(kernel);
  schedc_close(context);
  puts("the examples end");
  return 0;
}
"""

results = []


def expect(what, holds, why=""):
    results.append(bool(holds))
    if not holds:
        print(f"FAIL {what}: {why}")


def functions(text):
    """(name, the lines between blank ones that it stands in)"""
    for part in re.split(r"\n\s*\n(?! \*)", text):
        for name in re.findall(r"^SCHEDC_API [^;(]*?(schedc_\w+)\(", part, re.M):
            yield name, part


def structs(text):
    return re.findall(r"^typedef struct (schedc_\w+) \{\n(.*?)^\} \1;", text, re.M | re.S)


def examples(text):
    """(the function that the comment stands over, or None; its lines of code)"""
    for comment, after in re.findall(r"^/\*((?:(?!\*/).)*?Example:(?:(?!\*/).)*)\*/(.*?)(?=^/\*|\Z)", text, re.S | re.M):
        lines = comment[comment.index("Example:"):].split("\n")
        code = "\n".join(line[7:] for line in lines if line.startswith(" *     ")) + "\n"
        called = [name for name in re.findall(r"\b(schedc_\w+)\(", after) if name + "(" in code]
        yield called[-1] if called else None, code


def rules(text):
    for name, part in functions(text):
        expect(name, "/*" in part, "no comment says what it does")
    kept = re.search(r"The others never change.*?;", text, re.S).group(0)
    expect("the head's list", set(re.findall(r"schedc_\w+", kept)) == set(FROZEN), kept)
    for name, body in structs(text):
        macro = name.upper() + "_INIT"
        sized = body.lstrip().startswith("size_t size;")
        expect(name, sized != (name in FROZEN), "neither begins with `size` nor is said never to change")
        expect(macro, sized == (f"#define {macro} " in text) or name in HANDED_OUT, "is missing, or is for a struct without size")


def initialisers(text):
    """A C file that the compiler takes if no initialiser lacks a member, and no frozen struct has grown."""
    lines = ["#include <schedc.h>"]
    for name, _ in structs(text):
        if name in FROZEN:
            lines.append(f'_Static_assert(sizeof({name}) == {FROZEN[name]}, "{name}");')
        elif name not in HANDED_OUT:
            lines.append(f"extern const {name} of_{name};\nconst {name} of_{name} = {name.upper()}_INIT;")
    return "\n".join(lines) + "\n"


def program(text):
    outside, inside = "", ""
    for name, code in examples(text):
        if code.startswith("static"):
            outside += code
            continue
        body = "".join("  " + line + "\n" for line in code.splitlines())
        check = f'  if (status) return puts("{name}"), 1;\n'
        inside += BEFORE.get(name, "") + body + check + AFTER.get(name, "")
    return BEGIN + outside + MAIN + inside + END


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=100, **more)
    return done.returncode, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "release", "schedc"))
    beside = os.path.dirname(os.path.abspath(parser.parse_args().schedc))
    model, library = (os.path.join(beside, name) for name in ("libschedc_model.so", "libschedc.so"))
    with open(os.path.join(ROOT, "include", "schedc.h"), encoding="utf-8") as file:
        text = file.read()
    rules(text)
    shown = [name for name, _ in examples(text)]
    for name in ("schedc_build", "schedc_load", "schedc_launch", "schedc_gpu_run", "schedc_run_cpu", "schedc_tune"):
        expect("example of " + name, name in shown, "there is none")
    with tempfile.TemporaryDirectory() as folder:
        source, made = os.path.join(folder, "examples.c"), os.path.join(folder, "examples")
        for what, content in (("initialisers", initialisers(text)), ("the examples", program(text))):
            with open(source, "w", encoding="utf-8") as file:
                file.write(content)
            code, out = run("cc", "-std=c11", *WARNINGS, "-c", source, "-o", made + ".o")
            expect(what + ", as C", code == 0, out)
        code, out = run("c++", "-std=c++17", "-x", "c++", *WARNINGS, "-fsyntax-only", source)
        expect("the examples, as C++", code == 0, out)
        code, out = run("cc", made + ".o", library, model, f"-Wl,-rpath,{beside}", "-o", made)
        expect("the examples, linked", code == 0, out)
        if code == 0:
            os.symlink(os.path.join(ROOT, "schedules"), os.path.join(folder, "schedules"))
            device = {"SCHEDC_DRIVER": model, "SCHEDC_NVRTC": model, "SCHEDC_MODEL": ""}
            code, out = run(made, cwd=folder, env={**os.environ, **device})
            expect("the examples, run", code == 0 and "the examples end" in out, out)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed, 0 skipped")
    return not all(results)


if __name__ == "__main__":
    sys.exit(main())
