#!/usr/bin/env python3
"""Kernels that move memory beside PyTorch's own: one process, the same inputs, in turns.

  bench/memory.py [--only REGEX] [--out bench/results/memory.json] [--rounds N] [--dry-run]

Copies, softmax, layer norm and argmax of rows (memory_points.json) against copy_, torch.softmax, layer_norm and torch.argmax.
Params for tuning are those that the GPU's table has for a point's dimensions (schedules/tuned), or else the defaults. Every
point's output is compared with its specification (a sample of it, in float64, and all of it for NaN); a point that is wrong
has no figures. GB/s are of each element of a row read once and each of the result written once, whatever a kernel does. Times
are peers.py's: `cold` after pauses, `sustained` back to back; ratios are of sustained times. `of_copy` is the rate over that
of PyTorch's copy of a matrix as large (the point `copy f16`, measured in the same run).
It runs kernels through the Python package (find_schedc.py). Exit code: 0 all right, 1 a result is wrong, a kernel does
not build, or there is no package, 3 no GPU or no PyTorch.
"""
import argparse
import os
import sys

from calls import read_points
from find_schedc import schedc
from peers import ROUNDS, bytes_of, make_tensors, measure, measure_all, open_kernel, our_run, params_of, usable, verify
from pytorch import environment, find

POINTS = os.path.join("bench", "memory_points.json")
BESIDE = "copy f16"  # the point whose peer the other points are compared with


# ---- PyTorch's own

def peer_of(torch, one, kernel, tensors):
    named = {of.name: tensor for of, tensor in zip(kernel.tensors, tensors)}
    x, schedule = named["X"], os.path.basename(one["schedule"]).removesuffix(".sched")
    if schedule == "copy":
        out = torch.empty_like(x)
        return lambda: out.copy_(x)
    if schedule == "softmax_rows":
        return lambda: torch.softmax(x, -1)
    if schedule == "layernorm_rows":
        return lambda: torch.nn.functional.layer_norm(x, x.shape[-1:], named["G"], named["B"], 1e-5)
    return lambda: torch.argmax(x, -1)


# ---- a point

def measure_point(torch, store, one, rounds):
    result = {**{key: one[key] for key in ("name", "schedule", "dims", "bar")}, "unavailable": {}, "pass": False}
    kernel, shapes = open_kernel(one, store)
    try:
        result["params"] = params_of(kernel)
        tensors = make_tensors(torch, kernel, shapes)
        ours = our_run(torch, kernel, tensors)
        ours()
        result["outputs"] = verify(torch, kernel, tensors)
        result["pass"] = all(o["pass"] for o in result["outputs"])
        if not result["pass"]:
            return result
        result["bytes"] = bytes_of(kernel, shapes)
        runs = {"schedc": ours, **usable(torch, {"torch": peer_of(torch, one, kernel, tensors)}, result)}
        with torch.no_grad():
            times = measure(torch, runs, rounds)
        result["rounds"] = rounds
        for each in times.values():
            each["gb_cold"] = result["bytes"] / each["cold_ms"] * 1e-6
            each["gb_sustained"] = result["bytes"] / each["sustained_ms"] * 1e-6
        result["times"] = times
        if "torch" in times:
            result["ratio"] = times["torch"]["sustained_ms"] / times["schedc"]["sustained_ms"]
    finally:
        kernel.unload()
        torch.cuda.empty_cache()
    return result


def beside_copy(one, points):
    """Its rate over that of PyTorch's copy, and whether it meets its bar."""
    copies = [p["times"]["torch"] for p in points if p["name"] == BESIDE and "torch" in p.get("times", {})]
    if not copies or "times" not in one:
        return
    one["of_copy"] = one["times"]["schedc"]["gb_sustained"] / copies[0]["gb_sustained"]
    share = one["ratio"] if one["schedule"].endswith("/copy.sched") and "ratio" in one else one["of_copy"]
    one["met"] = share >= one["bar"]


# ---- what is printed

def line(result):
    if not result["pass"]:
        print(f"{result['name']:32} WRONG: {result.get('error') or [o for o in result['outputs'] if not o['pass']]}")
        return
    def cell(name):
        each = result["times"].get(name)
        return f"{each['gb_cold']:.0f} / {each['gb_sustained']:.0f}" if each else "-"
    print(f"{result['name']:32} {cell('schedc'):>13} {cell('torch'):>13} {result.get('ratio', 0):6.3f}", flush=True)


def describe_points(points):
    """--dry-run: every point's kernel is checked; what it would move."""
    for one in points:
        kernel, shapes = open_kernel(one)
        size = bytes_of(kernel, shapes)
        print(f"{one['name']:32} {kernel.name:16} {size * 1e-9:6.2f} GB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="REGEX", help="points whose name matches")
    parser.add_argument("--out", metavar="FILE", help="write JSON")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of sustained turns (default: %(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="check every point's kernel; needs no GPU")
    args = parser.parse_args()
    args.out = args.out and os.path.abspath(args.out)
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    points = read_points(POINTS, args.only)
    if not points:
        parser.error("no such point")
    if args.dry_run:
        describe_points(points)
        return 0
    torch = find("memory.py")
    if not torch:
        return 3
    document = environment(torch, schedc.__version__)
    print(f"{document['device']}, PyTorch {document['torch']}; GB/s, cold / sustained\n")

    def tell(result):
        beside_copy(result, document["points"])
        line(result)
    return measure_all(document, points, lambda store, one: measure_point(torch, store, one, args.rounds), tell, args.out)


if __name__ == "__main__":
    sys.exit(main())
