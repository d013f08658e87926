#!/usr/bin/env python3
"""NumPy as a peer of the command: inputs that NumPy wrote, outputs that NumPy reads, results that NumPy agrees with; and the
inputs that the command draws are those of the library beside it.

  npy.py --schedc build/schedc
"""
import argparse
import ctypes
import os
import subprocess
import sys
import tempfile

import numpy

from libschedc import TYPES, Tensor

SCHEDULE = """kernel scale {
  param T = f16 in { f16, bf16, f32, e4m3 }, narrow = false
  in X : T[M, 64]
  in n : f32 = 1
  in W : f32[R], s : f32 if narrow
  out Y : T[M, 64]
  out Z : f32[M] if narrow
  spec { Y[i,j] = n * X[i,j] }
  grid (x : cdiv(M, 64))
  role math : 1 warpgroup, 128 regs {
    reg v : f32[64, 64]
    v[i,j] = n * X[x*64 + i, j]
    Y[x*64 + i, j] = v[i,j]
  }
}
"""


def run(schedc, folder, x, *options):
    source, given, made = (os.path.join(folder, name) for name in ("scale.sched", "x.npy", "y.npy"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(SCHEDULE)
    numpy.save(given, x)
    if os.path.exists(made):
        os.remove(made)
    done = subprocess.run([schedc, "run", source, "--in", f"X={given}", "--out", f"Y={made}", "--set", "n=2", *options],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, encoding="utf-8")
    return done.returncode, done.stdout, numpy.load(made) if os.path.exists(made) else None


# P = exp(S - L): weights whose sum is 1 for each query, if L is made from Q and K; none, and so no gradient of V, if a
# file says that it is infinite. What a file brings is not made anew.
def gradient(schedc, folder, *options):
    source = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "schedules", "fa3_bwd.sched")
    made = os.path.join(folder, "dv.npy")
    done = subprocess.run([schedc, "run", "--on", "cpu", source, "-p", "D=64", "--out", f"dV={made}", *options],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, encoding="utf-8")
    return done.returncode, done.stdout, numpy.load(made)


# Y is 2 X: what the library draws for X, with the seed that schedc.h says, is half of what the command writes.
def drawn(schedc, folder, kind, seed):
    source, made = os.path.join(folder, "scale.sched"), os.path.join(folder, "y.npy")
    subprocess.run([schedc, "run", source, "--on", "cpu", "-p", "T=f32", "--set", "M=70", "--set", "n=2", "--inputs", kind,
                    "--seed", str(seed), "--out", f"Y={made}"], check=True, stdout=subprocess.PIPE, timeout=60)
    x, y = numpy.zeros((70, 64), "f4"), numpy.load(made)
    so = ctypes.CDLL(os.path.join(os.path.dirname(schedc), "libschedc.so"))
    tensor = Tensor(b"X", x.ctypes.data, TYPES.index("f32"), 2)
    tensor.shape[:2], tensor.strides[:2] = (70, 64), (64, 1)
    status = so.schedc_draw(ctypes.byref(tensor), kind.encode(), ctypes.c_uint64(seed * 1000))
    return status == 0 and x.any() and numpy.array_equal(2 * x, y)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", required=True)
    schedc = os.path.abspath(parser.parse_args().schedc)
    rng = numpy.random.default_rng(1)
    passed = failed = 0

    def expect(what, holds, text):
        nonlocal passed, failed
        passed, failed = passed + bool(holds), failed + (not holds)
        if not holds:
            print(f"FAIL {what}\n{text}")

    with tempfile.TemporaryDirectory() as folder:
        for dtype, option in (("f2", "T=f16"), ("f4", "T=f32"), ("f8", "T=f32")):
            x = rng.standard_normal((70, 64)).astype(dtype)
            code, text, y = run(schedc, folder, x, "-p", option)
            good = code == 0 and y is not None and y.dtype == ("f2" if dtype == "f2" else "f4")
            expect(f"{dtype} for {option}", good and numpy.array_equal(y, (2 * x.astype(y.dtype)).astype(y.dtype)), text)
        bits = rng.integers(0x3c00, 0x4000, (70, 64)).astype("u2")  # bf16: doubling adds one to the exponent
        code, text, y = run(schedc, folder, bits, "-p", "T=bf16")
        expect("bf16 as its bits", code == 0 and y is not None and numpy.array_equal(y, bits + 0x80), text)
        bits = rng.integers(0x30, 0x40, (70, 64)).astype("u1")
        code, text, y = run(schedc, folder, bits, "-p", "T=e4m3")
        expect("e4m3 as its bits", code == 0 and y is not None and numpy.array_equal(y, bits + 8), text)
        x = rng.standard_normal((70, 64))
        code, text, y = run(schedc, folder, x.astype("i4"), "-p", "T=f16")
        expect("another type is refused", code == 3 and "holds i4" in text, text)
        code, text, y = run(schedc, folder, x[:, :63].astype("f2"), "-p", "T=f16")
        expect("another shape is refused", code != 0 and y is None, text)
        code, text, y = run(schedc, folder, numpy.asfortranarray(x.astype("f2")), "-p", "T=f16")
        expect("Fortran order is refused", code == 3, text)
        for kind in ("normal", "spike", "ramp-down"):
            expect(f"{kind} as the library draws it", drawn(schedc, folder, kind, 3), "")
        code, text, y = run(schedc, folder, x.astype("f4"), "-p", "T=f32", "--set", "X=[1.5, -2,3]")
        wanted = numpy.full(x.size, 6)
        wanted[:2] = 3, -4
        expect("--set lists elements", code == 0 and numpy.array_equal(y.ravel(), wanted), text)
        for value in ("[1,]", "[]", "1", "[1", "[1]2", "[x]"):
            code, text, _ = run(schedc, folder, x.astype("f4"), "-p", "T=f32", "--set", f"X={value}")
            expect(f"--set X={value} is refused", code == 2 and "wants a list of elements" in text, text)
        code, text, _ = run(schedc, folder, x.astype("f4"), "-p", "T=f32", "--set", "Y=[1]")
        expect("--set of an output is refused", code == 2 and "'Y' is not an input" in text, text)
        for option, value in (("--set", "R=3"), ("--set", "s=1"), ("--set", "W=[1]"), ("--in", "W=-"), ("--out", "Z=z.npy")):
            code, text, _ = run(schedc, folder, x.astype("f4"), "-p", "T=f32", option, value)
            what = {"R": "dimension", "s": "scalar"}.get(value[0], "tensor")
            said = f"the {what} '{value[0]}' is not there: its guard 'narrow' is false"
            expect(f"{option} {value}: the guard is named", code == 2 and said in text, text)
        code, text, _ = run(schedc, folder, x.astype("f4"), "-p", "T=f32", "--in", "Q=-")
        expect("a name that the kernel has not", code == 2 and "'Q' is not a tensor of 'scale'" in text, text)
        numpy.save(os.path.join(folder, "do.npy"), numpy.ones((1, 100, 2, 64), "f2"))
        code, text, y = gradient(schedc, folder, "--in", f"dO={folder}/do.npy")
        expect("what a sequence is given is made", code == 0 and numpy.allclose(y.astype("f4").sum((1, 2)), 200, 0.01), text)
        numpy.save(os.path.join(folder, "l.npy"), numpy.full((1, 2, 100), numpy.inf, "f4"))
        code, text, y = gradient(schedc, folder, "--in", f"L={folder}/l.npy")
        expect("but for what a file brings", code == 0 and not y.any(), text)
        code, text, y = gradient(schedc, folder, "--set", "L=[inf]")
        expect("and for what --set brings", code == 0 and not y.any(), text)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
