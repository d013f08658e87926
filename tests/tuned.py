#!/usr/bin/env python3
"""Stores and their users: which line `schedc run`, `bench` and C headers take for which dimensions, held to the rule of
runtime/tune/README.md as it is written here a second time; and on the model of a GPU, that a header launches the variant
that it chose. Without a GPU or CUDA; it needs the C and C++ compilers of the host.

  tuned.py --schedc build/release/schedc

The library and the model are those beside schedc.
"""
import argparse
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile

import header
from checks import Checks, expect
from libschedc import Library

HERE = os.path.dirname(os.path.abspath(__file__))

# What it writes tells with which A it was made. B is a param of the problem.
TOLD = """kernel told {
  param B = 32 in { 32, 64 }
  param A = 1 in { 1, 2, 3, 4 }
  in X : f32[M, N, B]
  out Y : f32[M, N, B]
  grid (m : M, n : N)
  ring r : f32[1, B] * 2
  role load : 1 warp, 40 regs { r <- X[m, n.., 0..] }
  role math : 1 warpgroup, 128 regs {
    wait r
    Y[m, n + i, j] = r[i,j] + A
    release r
  }
}
"""
RIGHT = TOLD.replace("r[i,j] + A", "2 * r[i,j]").replace("* 2\n", "* (A + 1)\n") \
    .replace("  grid", "  spec { Y[i,j,k] = 2 * X[i,j,k] }\n  case small { M = 64, N = 2 }\n  grid")
MODEL = "schedc's model of a Hopper GPU"
TABLE = "schedc-s-model-of-a-hopper-gpu.jsonl"
LINES = [  # M, N, A, rank, date, and what differs
    (64, 2, 2, 1, "2026-01-02", {}),
    (64, 2, 3, 2, "2026-01-03", {}),
    (64, 2, 4, 1, "2026-01-01", {}),
    (64, 3, 3, 1, "2026-01-01", {}),
    (1024, 2, 3, 1, "2026-01-01", {}),
    (256, 2, 1, 1, "2026-01-01", {}),  # the default
    (16, 1, 2, 2, "2026-01-01", {}),
    (64, 32, 4, 1, "2026-01-01", {"status": "measured"}),
    (64, 64, 4, 1, "2026-01-01", {"problem": {"B": "64"}}),
    (64, 128, 4, 1, "2026-01-01", {"schedule": "0" * 32}),
    (0, 0, 4, 1, "2026-01-01", {}),
]
SHAPES = [(64, 2), (64, 3), (64, 4), (60, 2), (90, 2), (91, 2), (128, 2), (181, 2), (182, 2), (256, 2), (512, 2), (1448, 2),
          (1449, 2), (8192, 2), (8193, 2), (16384, 2), (1, 1), (16, 1), (32, 2), (64, 16), (64, 32), (64, 64), (0, 0), (0, 1),
          (0, 7), (0, 12), (5, 0), (1 << 40, 1 << 30)]


# ---- the rule, as the README has it

def bucket(n):
    """The power of two that is nearest by ratio."""
    if n <= 0:
        return 0
    low = 1 << (n.bit_length() - 1)
    return low if n * n < 2 * low * low else 2 * low


def doublings(a, b):
    return abs(bucket(a).bit_length() - bucket(b).bit_length())


def best(m, n, lines=LINES, **fixed):
    """The number of the line (from 1) for a shape, or None."""
    found = []
    for number, (lm, ln, a, rank, date, other) in enumerate(lines, 1):
        apart = doublings(m, lm) + doublings(n, ln)
        if other or apart > 3 or fixed.get("A", a) != a:
            continue
        found.append((apart, apart == 0 and (m, n) != (lm, ln), rank, [-ord(c) for c in date], -number))
    return -min(found)[-1] if found else None


# ---- what it is held against

class Setting:
    def __init__(self, schedc, folder):
        self.schedc, self.folder = os.path.abspath(schedc), folder
        self.model = os.path.join(os.path.dirname(self.schedc), "libschedc_model.so")
        self.env = {**os.environ, "SCHEDC_CACHE": os.path.join(folder, "cache"), "SCHEDC_NVRTC": self.model,
                    "LD_LIBRARY_PATH": os.path.dirname(self.model)}
        self.env.pop("SCHEDC_STORE", None)
        self.told, self.right = self.write("told.sched", TOLD), self.write("right.sched", RIGHT)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        os.makedirs(self.folder, exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def hash(self, path):
        library = Library(os.path.join(os.path.dirname(self.schedc), "libschedc.so"))
        with open(path, "rb") as file:
            text = file.read()
        source, digits = ctypes.c_void_p(), ctypes.create_string_buffer(33)
        library.check(library.so.schedc_parse(ctypes.byref(source), library.context, b"x", text, ctypes.c_size_t(len(text))))
        library.check(library.so.schedc_store_schedule(library.context, source, None, digits, None))
        library.so.schedc_source_free(source)
        return digits.value.decode()

    def store(self, name, schedule, lines=LINES, gpu=MODEL):
        records = [{"store": 1, "schedule": self.hash(schedule), "unit": "told", "problem": {"B": "32"}, "dims": {"N": n, "M": m},
                    "gpu": gpu, "driver": 13000, "nvrtc": 13000, "schedc": "0.2.0", "tuning": {"A": str(a)}, "status": "verified",
                    "inputs": "normal", "cold_ms": 0, "sustained_ms": 1, "noise": 0, "reference_ms": 2, "launches": 3,
                    "rank": rank, "date": date, **other} for m, n, a, rank, date, other in lines]
        return self.write(name, "".join(json.dumps(r) + "\n" for r in records))

    def call(self, command, *arguments):
        return subprocess.run([self.schedc, command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                              encoding="utf-8", env=self.env)

    def moved(self, folder):
        """The same with a copy of the command and the model, and a table of the model's in `folder`."""
        other = Setting(self.schedc, self.path("moved"))
        beside = os.path.dirname(other.path(os.path.join(folder, TABLE)))
        os.makedirs(beside, exist_ok=True)
        os.makedirs(other.path("bin"), exist_ok=True)
        for file in (self.schedc, self.model):
            shutil.copy(file, other.path("bin"))
        other.schedc = other.path(os.path.join("bin", "schedc"))
        self.store(os.path.join(beside, TABLE), self.right, LINES[:6])
        return other

    def json(self, command, *arguments):
        done = self.call(command, *arguments, "--format", "json")
        expect(done.stdout.startswith("{"), done.stdout)
        return json.loads(done.stdout)


def line_of(said):
    return said["tuned"]["line"]


# ---- run and bench

def runs(s):
    store = s.store("right.jsonl", s.right)
    for m, n in [(64, 2), (64, 3), (182, 2), (16, 1), (60, 2)]:
        for where in ("cpu", "model"):
            said = s.json("run", s.right, "--on", where, "--set", f"M={m}", "--set", f"N={n}", "--tuned", store)
            want = best(m, n)
            expect(line_of(said) == want, f"M={m} N={n} on {where}: line {line_of(said)}, and not {want}")
            expect(said["pass"] and said["tuned"]["tuning"] == {"A": str(LINES[want - 1][2])}, f"{said}")
    said = s.json("run", s.right, "--on", "cpu", "--tuned", store, "-p", "A=3")
    expect(line_of(said) == best(64, 2, A=3), f"with A = 3: {said['tuned']}")
    said = s.json("run", s.right, "--on", "cpu", "--tuned", store, "-p", "B=64")
    expect(line_of(said) is None, f"with B = 64: {said['tuned']}")
    expect("tuned" not in s.json("run", s.right, "--on", "cpu"), "a store is read that nobody named")
    text = s.call("run", s.right, "--on", "cpu", "--tuned", store).stdout
    expect("A = 2" in text.split("tuned")[0] and f"right.jsonl:{best(64, 2)}: A = 2; verified on {MODEL} at" in text, text)
    text = s.call("run", s.right, "--on", "cpu", "--tuned", s.write("none.jsonl", "")).stdout
    expect("no line of" in text and "PASS" in text, text)


def gpus(s):
    """On a GPU its own lines count; without one those of any."""
    store = s.store("other.jsonl", s.right, LINES, "another GPU")
    expect(line_of(s.json("run", s.right, "--on", "model", "--tuned", store)) is None, "a line of another GPU is taken")
    expect(line_of(s.json("run", s.right, "--on", "cpu", "--tuned", store)) == best(64, 2), "on the CPU none is taken")


def benches(s):
    store = s.store("right.jsonl", s.right)
    said = s.json("bench", s.right, "--on", "model", "--rounds", "0", "--tuned", store, "--vary", "M=64,256,0", "--set", "N=2")
    got = [(v["variant"], v.get("params", {}).get("A"), v.get("tuned", {}).get("line"), "left_out" in v) for v in said["variants"]]
    want = [("M=64", "1", None, False), ("M=64 tuned", "2", best(64, 2), False), ("M=256", "1", None, False),
            ("M=256 tuned", None, best(256, 2), True), ("M=0", "1", None, False), ("M=0 tuned", "4", best(0, 2), False)]
    expect(got == want and said["pass"], f"{got}")
    text = s.call("bench", s.right, "--dry-run", "--tuned", store, "--set", "M=256", "--set", "N=2").stdout
    expect("left out: the params are the usual ones" in text, text)
    text = s.call("bench", s.right, "--dry-run", "--tuned", store, "--set", "M=65536").stdout
    expect("left out: no line of " + store + " fits" in text, text)
    text = s.call("bench", s.right, "--dry-run", "--tuned", store).stdout
    expect("  tuned: " + store in text, text)


def refusals(s):
    store = s.store("right.jsonl", s.right)
    both = s.write("both.jsonl", open(store, encoding="utf-8").read()
                   + open(s.store("one.jsonl", s.right, LINES[:1], "another GPU"), encoding="utf-8").read())
    for code, word, command in (
            (2, "are for a C header", ("build", s.right, "--tuned", store, "-o", s.path("x.cu"))),
            (2, "say which by --gpu", ("build", s.right, "--tuned", both, "-o", s.path("x.h"))),
            (2, "are for a C header", ("build", s.right, "--gpu", MODEL, "-o", s.path("x.cu"))),
            (3, "there is no table of", ("build", s.right, "--gpu", MODEL, "-o", s.path("x.h"))),
            (2, "needs the dimensions first", ("run", s.right, "--on", "cpu", "--tuned", store, "--in", "X=-")),
            (1, "F.store", ("run", s.right, "--on", "cpu", "--tuned", s.right)),
            (3, "wants a store that is there", ("run", s.right, "--on", "cpu", "--tuned", s.path("mistyped.jsonl"))),
            (3, "wants a store that is there", ("bench", s.right, "--dry-run", "--tuned", s.path("mistyped.jsonl"))),
            (3, "wants a store that is there", ("build", s.right, "--tuned", s.path("mistyped.jsonl"), "-o", s.path("x.h")))):
        done = s.call(*command)
        expect(done.returncode == code and word in done.stdout, f"{command}: exit code {done.returncode}, {done.stdout}")
    said = s.json("build", s.right, "--tuned", both, "--gpu", "another GPU", "-o", s.path("x.h"))
    expect([v["line"] for v in said["variants"]] == [len(LINES) + 1], f"{said['variants']}")


# ---- without --tuned

def names(s):
    """The file of each GPU in a folder of tables, with room for all of it and for less."""
    table_name = Library(os.path.join(os.path.dirname(s.schedc), "libschedc.so")).so.schedc_table_name
    table_name.argtypes, table_name.restype = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t), ctypes.c_size_t
    for gpu, want in ((MODEL, TABLE), ("NVIDIA H200", "nvidia-h200.jsonl"), (" _H100  PCIe! ", "h100-pcie.jsonl"), ("", ".jsonl")):
        for room in (0, 1, 5, len(want), len(want) + 1, 100):
            name = ctypes.create_string_buffer(b"#" * 100)
            n = table_name(gpu.encode(), name, room)
            whole = want[:max(0, room - 1)].encode() + (b"\0" if room else b"")
            expect(n == len(want) and name.raw[:100] == whole.ljust(100, b"#"), f"{gpu} in {room} bytes: {n}, {name.raw}")


def looks(s):
    """--tuned before $SCHEDC_STORE before the table beside the command, or where it is installed; that only on its GPU."""
    other = s.store("other.jsonl", s.right, [(64, 2, 4, 1, "2026-01-01", {})])
    for folder in (os.path.join("bin", "tuned"), os.path.join("share", "schedc", "schedules", "tuned")):
        moved = s.moved(folder)
        table = os.path.join(os.path.dirname(moved.schedc), os.path.relpath(folder, "bin"), TABLE)

        def taken(*arguments, store=None, on="model", command="run"):
            moved.env.update({} if store is None else {"SCHEDC_STORE": store})
            said = moved.json(command, s.right, *arguments, *(["--on", on] if on else []))
            moved.env.pop("SCHEDC_STORE", None)
            return (said if command == "run" else said["variants"][-1]).get("tuned", {}).get("store")
        for want, got in ((table, taken()), (None, taken(on="cpu")), (None, taken(store="")), (other, taken(store=other)),
                          (other, taken(store=other, on="cpu")), (other, taken("--tuned", other, store=s.right)),
                          (None, taken("-p", "B=64")), (None, taken("-p", "B=64", store=other)),
                          (table, taken("--rounds", "0", command="bench")), (None, taken("--dry-run", on="", command="bench")),
                          (None, taken("--rounds", "0", "--vary", "A=1,2", command="bench")),
                          (None, taken("--rounds", "0", "-p", "A=1", command="bench")),
                          (None, taken("--rounds", "0", "--set", "M=256", command="bench")),
                          (None, taken("--rounds", "0", store="", command="bench"))):
            expect(got == want, f"{got}, and not {want}")
        built = moved.json("build", s.right, "--gpu", MODEL, "-o", s.path("x.h"))
        expect([v["store"] for v in built["variants"]] == [table] * 4, f"{built}")
        expect("variants" not in moved.json("build", s.right, "-o", s.path("x.h")), "a header has variants that nobody asked for")
        shutil.rmtree(moved.folder)


# ---- headers

MAIN = """#include "told.h"
#include <stdio.h>
#include <stdlib.h>
#ifdef ON_MODEL
CUresult cuInit(unsigned flags);
CUresult cuDevicePrimaryCtxRetain(void **context, CUdevice device);
CUresult cuCtxSetCurrent(void *context);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUresult cuCtxSynchronize(void);
static int launch(told_kernel *k, told_args *a) {
  float *y = (float *)calloc(a->M * a->N * 32 + 1, sizeof *y), first;
  size_t bytes = a->M * a->N * 32 * sizeof *y, wrong = 0;
  int64_t steps[] = {a->N * 32, 32, 1};
  memcpy(a->X_stride, steps, sizeof steps);
  memcpy(a->Y_stride, steps, sizeof steps);
  if (cuMemAlloc(&a->X, bytes + 256) || cuMemAlloc(&a->Y, bytes + 256) || cuMemcpyHtoD_v2(a->X, y, bytes)) return -1;
  if (told_launch(k, a, NULL) || cuCtxSynchronize() || cuMemcpyDtoH_v2(y, a->Y, bytes)) return -2;
  for (size_t i = 0; i < bytes / sizeof *y; i++) wrong += y[i] != y[0];
  first = y[0];
  free(y);
  return wrong ? -3 : (int)first;
}
#endif
int main(int argc, char **argv) {
  told_args a;
  memset(&a, 0, sizeof a);
#ifdef ON_MODEL
  void *context;
  told_kernel k;
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) || told_load(&k)) return 1;
#endif
  for (int i = 1; i + 1 < argc; i += 2) {
    a.M = strtoll(argv[i], NULL, 10);
    a.N = strtoll(argv[i + 1], NULL, 10);
#ifdef ON_MODEL
    printf("%d\\n", launch(&k, &a));
#else
    printf("%u\\n", told_variant(&a));
#endif
  }
#ifdef ON_MODEL
  told_unload(&k);
#endif
  return 0;
}
"""


def compiled(s, language, standard, *more):
    source, program = s.write("main." + language, MAIN), s.path("main")
    compiler = {"c": "gcc", "cc": "g++"}[language]
    done = subprocess.run([compiler, standard, *header.WARNINGS, "-I", os.path.join(HERE, "header"), "-I", s.folder, source, "-o",
                           program, *more], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
    expect(done.returncode == 0, done.stdout)
    return program


def answers(s, program, shapes):
    done = subprocess.run([program, *(str(n) for shape in shapes for n in shape)], stdout=subprocess.PIPE, timeout=120, env=s.env)
    expect(done.returncode == 0, f"exit code {done.returncode}")
    return [int(word) for word in done.stdout.split()]


def variants_of(lines):
    """The A of each variant, as the header numbers them."""
    with_best = [n for n, (m, k, *_) in enumerate(lines, 1) if best(m, k) == n]
    order = sorted(with_best, key=lambda n: (lines[n - 1][3], [-ord(c) for c in lines[n - 1][4]], -n))
    values = [1]
    for n in order:
        if lines[n - 1][2] not in values:
            values.append(lines[n - 1][2])
    return values


def chooses(s):
    """As C99 and as C++: the variant of each shape."""
    done = s.call("build", s.told, "--tuned", s.store("told.jsonl", s.told), "-o", s.path("told.h"))
    expect(done.returncode == 0, done.stdout)
    values = variants_of(LINES)
    for language, standard in (("c", "-std=c99"), ("cc", "-std=c++17")):
        program = compiled(s, language, standard, os.path.join(HERE, "header", "driver.c") if language == "c" else s.model,
                           *(['-DFUNCTIONS={"told", 0, 0}'] if language == "c" else []))
        for shape, got in zip(SHAPES, answers(s, program, SHAPES)):
            line = best(*shape)
            want = LINES[line - 1][2] if line else 1
            expect(values[got] == want, f"{standard}, M, N = {shape}: variant {got}, with A = {values[got]} and not {want}")


def launches(s):
    """On the model: each shape's results are those of the variant that the rule gives it."""
    shapes = [(64, 2), (64, 3), (60, 2), (182, 2), (1000, 1), (16, 1), (64, 32), (3, 40)]
    program = compiled(s, "c", "-std=c99", "-DON_MODEL", s.model)
    want = [LINES[best(*x) - 1][2] if best(*x) else 1 for x in shapes]
    expect(set(want) == {1, 2, 3}, f"the shapes have only the variants {want}")
    got = answers(s, program, shapes)
    expect(got == want, f"A is {got}, and not {want}")


def small_stores(s):
    """Without a line that fits the header is that of the defaults; two headers of one name are refused."""
    alone, empty = s.path("alone.h"), s.path("empty.h")
    s.call("build", s.told, "-o", alone)
    done = s.call("build", s.told, "--tuned", s.write("none.jsonl", ""), "-o", empty)
    expect("no line of" in done.stdout, done.stdout)
    expect(open(alone, "rb").read() == open(empty, "rb").read(), "the header without variants is another")
    s.write("two.c", '#include "told.h"\n#include "alone.h"\nint main(void) { return 0; }\n')
    done = subprocess.run(["gcc", "-fsyntax-only", "-I", os.path.join(HERE, "header"), s.path("two.c")], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8")
    expect("another kernel is called told" in done.stdout, done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", required=True)
    parser.add_argument("--only", help="a regular expression")
    args = parser.parse_args()
    checks = Checks(args.only)
    with tempfile.TemporaryDirectory() as folder:
        s = Setting(args.schedc, folder)
        for name, check in (("run", runs), ("lines of other GPUs", gpus), ("bench", benches), ("refusals", refusals),
                            ("names of tables", names), ("where stores are looked for", looks), 
                            ("a header's choice", chooses), ("a header's launches", launches),
                            ("headers without variants", small_stores)):
            checks.run(name, check, s)
    return checks.tell()


if __name__ == "__main__":
    sys.exit(main())
