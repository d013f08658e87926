#!/usr/bin/env python3
"""The accuracy of attention in FP8, as FlashAttention-3's paper measures it: the root of the mean squared error of O against
float64, on numbers of which one in a thousand is an outlier, N(0, 1) + N(0, 100) * Bernoulli(0.001).

All variants are of shipped schedules, from the same f16 inputs to f16 results, of four heads: fa3_fwd, and fa3_fp8_from16 with
and without block quantization and incoherent processing; without blocks each head has one scale. `--on cpu` interprets them,
`--on model` runs what is emitted, and adds products of 8-bit factors with as many bits as the tensor cores.

  fp8_accuracy.py [--schedc build/release/schedc] [--on cpu|model|cuda] [--out bench/results/fp8_accuracy.json]

Needs NumPy; on the CPU about five minutes.
"""
import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from calls import AS_WRITTEN

HEADS = 4
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# name; file, kernel or sequence, params; what the paper has
FP8 = ("fa3_fp8", "fa3_fp8_from16")
VARIANTS = [
    ("f16", ("fa3_fwd", "fa3_fwd"), [], 1.9e-4),
    ("FP8, a scale for each head", FP8, ["block=0", "incoherent=false"], 2.4e-2),
    ("FP8, blocks and incoherent processing", FP8, ["block=128", "incoherent=true"], 9.1e-3),
    ("… without blocks", FP8, ["block=0", "incoherent=true"], 9.3e-3),
    ("… without incoherent processing", FP8, ["block=128", "incoherent=false"], 2.4e-2),
]


def draw(rng, length, width):
    shape = (1, length, HEADS, width)
    outliers = 10 * rng.standard_normal(shape) * (rng.random(shape) < 0.001)
    return (rng.standard_normal(shape) + outliers).astype(np.float16)


def attention(q, k, v):
    """In float64: O by heads."""
    q, k, v = (x[0].astype(np.float64).transpose(1, 0, 2) for x in (q, k, v))
    s = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[2])
    p = np.exp(s - s.max(axis=2, keepdims=True))
    return p @ v / p.sum(axis=2, keepdims=True)


def run(args, folder, variant, width, inputs):
    _, (file, unit), params, _ = variant
    fp8 = unit != file
    out = os.path.join(folder, "O.npy")
    command = [args.schedc, "run", os.path.join(ROOT, "schedules", file + ".sched"), unit, "--on", args.on, "--sample", "1"]
    for x in params + [f"D={width}"] + (["TO=f16"] if fp8 else []):
        command += ["-p", x]
    for name, path in inputs.items():
        if name == "signs" and "incoherent=true" not in params:
            continue
        command += ["--in", f"{name}{'16' if fp8 and name != 'signs' else ''}={path}"]
    done = subprocess.run(command + ["--out", f"O={out}"], capture_output=True, encoding="utf-8", check=False, env=AS_WRITTEN)
    if not os.path.exists(out):
        sys.exit(f"fp8_accuracy: {' '.join(command)} has ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    o = np.load(out)[0].astype(np.float64).transpose(1, 0, 2)
    os.remove(out)
    return o


def measure(args, folder, length, width):
    rng = np.random.default_rng(args.seed)
    tensors = {name: draw(rng, length, width) for name in "QKV"}
    right = attention(*tensors.values())
    tensors["signs"] = rng.choice(np.array([-1, 1], np.float32), width)
    inputs = {name: os.path.join(folder, name + ".npy") for name in tensors}
    for name, path in inputs.items():
        np.save(path, tensors[name])
    for variant in VARIANTS:
        error = run(args, folder, variant, width, inputs) - right
        yield {"variant": variant[0], "schedule": variant[1][1], "params": variant[2], "length": length, "width": width,
               "rmse": float(np.sqrt((error**2).mean())), "paper": variant[3]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build/release/schedc"))
    parser.add_argument("--on", default="cpu", choices=["cpu", "model", "cuda"])
    parser.add_argument("--lengths", type=int, nargs="+", default=[1024, 2048])
    parser.add_argument("--widths", type=int, nargs="+", default=[64, 128, 256])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="a JSON file")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for length in args.lengths:
            for width in args.widths:
                for row in measure(args, folder, length, width):
                    rows.append(row)
                    print(f"{length:6} {width:4}  {row['variant']:40} {row['rmse']:.2e}  ({row['paper']:.1e})", flush=True)
    if args.out:
        document = {"date": datetime.date.today().isoformat(), "on": args.on, "seed": args.seed, "rows": rows}
        with open(args.out, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1, ensure_ascii=False)
            file.write("\n")


if __name__ == "__main__":
    main()
