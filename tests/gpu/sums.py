#!/usr/bin/env python3
"""How do the tensor cores add up products? The model of a GPU claims to have a Hopper GPU's sums to the bit.

  tests/gpu/sums.py --on cuda --out bench/results/sums.json    on a GPU: a digest of the sums of each set of factors
  tests/gpu/sums.py --on model                                 the model's sums have the digests of bench/results/sums.json
  … --schedc build/release/schedc --keep FOLDER                which command; where the sums are left, as .npy files

Factors are drawn from hashes of their places, so that they are the same everywhere: of like exponents (`near`), of exponents
all over the type's (`wide`, with numbers below the normal ones), all of one sign (`like`), and small enough that sums lie below
the normal numbers of f32 (`tiny`, bf16 alone reaches them). What is added to is 0, or a number of any exponent from 2^-12 to 2^12.

Exit code: 0 all agree, or the digests are written; 1 some do not; 2 the command line is wrong; 3 there is no GPU.
"""
import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KERNEL = os.path.join("tests", "gpu", "sums.sched")
RESULTS = os.path.join("bench", "results", "sums.json")
ROWS = COLUMNS = 256
TYPES = {  # bits of the exponent, of the fraction; what the file has them as; how far `wide` goes from 1
    "f16": (5, 10, numpy.float16, 12), "bf16": (8, 7, numpy.uint16, 14),
    "e4m3": (4, 3, numpy.uint8, 6), "e5m2": (5, 2, numpy.uint8, 12),
}
SETS = [(t, k, kind) for t, k in (("f16", 16), ("f16", 64), ("bf16", 16), ("bf16", 64), ("e4m3", 32), ("e4m3", 64), ("e5m2", 32))
        for kind in ("near", "wide", "like")] + [("bf16", 16, "tiny")]


# ---- factors

def drawn(name, count):
    """So many 64-bit integers, by splitmix64 of the name's digest and their places."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    with numpy.errstate(over="ignore"):
        z = numpy.arange(count, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15) + numpy.uint64(seed)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        return z ^ (z >> numpy.uint64(31))


def between(bits, low, high):
    """Integers from low to high, by the bits of each."""
    return (low + (bits % numpy.uint64(high - low + 1)).astype(numpy.int64)).astype(numpy.int64)


def factors(name, kind, element, shape):
    exponent_bits, fraction_bits, stored, far = TYPES[element]
    bits, bias = drawn(name, shape[0] * shape[1]), 2 ** (exponent_bits - 1) - 1
    fraction, sign = between(bits, 0, 2 ** fraction_bits - 1), between(bits >> numpy.uint64(20), 0, 1)
    span = {"near": (-2, 2), "like": (-1, 0), "wide": (-far, far), "tiny": (-70, -60)}[kind]
    exponent = numpy.clip(between(bits >> numpy.uint64(24), *span) + bias, 0, 2 ** exponent_bits - 2)
    if kind == "like":
        sign = 0 * sign
    code = (sign << (exponent_bits + fraction_bits) | exponent << fraction_bits | fraction).reshape(shape)
    return code.astype(numpy.uint16).view(stored) if element == "f16" else code.astype(stored)


def addends(name, kind):
    bits = drawn(name, ROWS * COLUMNS)
    fraction = between(bits, 0, 2 ** 23 - 1)
    exponent = between(bits >> numpy.uint64(24), -12, 12) + (127 if kind != "tiny" else 0)
    code = (between(bits >> numpy.uint64(40), 0, 1) << 31 | numpy.clip(exponent, 0, 254) << 23 | fraction).reshape(ROWS, COLUMNS)
    code[:, :32] = 0
    return code.astype(numpy.uint32).view(numpy.float32)


# ---- sums

def summed(args, folder, element, depth, kind):
    """The digest of a set's sums."""
    name = f"{element}-{depth}-{kind}"
    paths = {tensor: os.path.join(folder, f"{name}-{tensor}.npy") for tensor in "ABXC"}
    numpy.save(paths["A"], factors(name + "-A", kind, element, (ROWS, depth)))
    numpy.save(paths["B"], factors(name + "-B", kind, element, (COLUMNS, depth)))
    numpy.save(paths["X"], addends(name + "-X", kind))
    command = [args.schedc, "run", KERNEL, "-p", f"T={element}", "-p", f"K={depth}", "--on", args.on, "--out", f"C={paths['C']}"]
    command += [word for tensor in "ABX" for word in ("--in", f"{tensor}={paths[tensor]}")]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False)
    if done.returncode == 3 and args.on == "cuda":
        print(done.stdout, end="", file=sys.stderr)
        sys.exit(3)
    # (Exit code 1: the specification's tolerance is not what is asked here.)
    if done.returncode not in (0, 1) or not os.path.exists(paths["C"]):
        raise SystemExit(f"{' '.join(command)}: {done.stdout}")
    return hashlib.sha256(numpy.load(paths["C"]).astype("<f4").tobytes()).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default="build/release/schedc")
    parser.add_argument("--on", choices=["cuda", "model"], required=True)
    parser.add_argument("--out")
    parser.add_argument("--keep")
    args = parser.parse_args()
    args.schedc = os.path.abspath(args.schedc)
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or temporary
        os.makedirs(folder, exist_ok=True)
        found = {f"{t} {k} {kind}": summed(args, folder, t, k, kind) for t, k, kind in SETS}
    if args.out:
        info = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], stdout=subprocess.PIPE,
                              encoding="utf-8", check=False).stdout.split("\n")[0] if args.on == "cuda" else "the model of a GPU"
        with open(args.out, "w", encoding="utf-8") as out:
            json.dump({"benchmark": "sums", "gpu": info, "sums": ROWS * COLUMNS, "digests": found}, out, indent=1)
            out.write("\n")
        return 0
    with open(os.path.join(ROOT, RESULTS), encoding="utf-8") as file:
        wanted = json.load(file)["digests"]
    wrong = [name for name in wanted if found.get(name) != wanted[name]]
    for name in wrong:
        print(f"FAIL {name}: other sums than an H200's")
    print(f"{len(wanted) - len(wrong)} passed, {len(wrong)} failed, 0 skipped")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
