#!/usr/bin/env python3
"""Kernels that move memory beside PyTorch's own: one process, the same inputs, in turns.

  bench/memory.py [--only REGEX] [--out bench/results/memory.json] [--rounds N] [--dry-run]
  bench/memory.py --sweep [--only REGEX] [--out FILE] [--seconds N]

Copies, softmax, layer norm and argmax of rows against copy_, torch.softmax, layer_norm and torch.argmax. Every point's
output is compared with its specification (a sample of it, in float64, and all of it for NaN); a point that is wrong has no
figures. GB/s are of each element of a row read once and each of the result written once, whatever a kernel does. Times are
peers.py's: `cold` after pauses, `sustained` back to back; ratios are of sustained times. `of_copy` is the rate over that of
PyTorch's copy of a matrix as large (the point `copy f16`, measured in the same run).
--sweep measures each point with other params for tuning as well, for --seconds in all (240): every point has its share, and
variants are tried in an order that is the same in each run. The default is compared with the specification, the others with
what the default made. The fastest are printed, and all are in the JSON.
It runs kernels through the Python package (find_schedc.py). Exit code: 0 all right, 1 a result is wrong, a kernel does
not build, or there is no package, 3 no GPU or no PyTorch.
"""
import argparse
import itertools
import os
import random
import re
import statistics
import sys
import time
import traceback

from calls import write
from find_schedc import schedc
from peers import (Wrong, bytes_of, is_written, launches, make_tensors, measure, open_kernel, our_run, params_of,
                   usable, verify)
from pytorch import environment, find

SWEEP_LAUNCHES, SWEEP_COUNTED = 30, 20
NEAR = 2.0 ** -9  # what roundings in another order may do: two units of an f16's last place

# ---- the points

COPY = {"BM": [8, 16, 32, 64, 128], "BN": [64, 128, 256, 512], "stages": [2, 3, 4, 6, 8, 12, 16], "span": [1, 4, 8, 16]}
ROWS = {"W": [4, 8], "BN": [128, 256, 512, 1024], "stages": [2, 4, 6, 8, 10, 12, 13, 16, 24]}


def point(name, schedule, kind, m, n, bar, space):
    """bar: the least share of the bandwidth that PyTorch's copy has (of a copy: of the time of PyTorch's)."""
    return {"name": name, "schedule": f"schedules/{schedule}.sched", "params": {"T": kind}, "dims": {"M": m, "N": n},
            "bar": bar, "space": space}


POINTS = [
    point("copy f16", "copy", "f16", 16384, 16384, 0.97, COPY),
    point("copy f32", "copy", "f32", 16384, 8192, 0.97, COPY),
    point("softmax f16, 4096 columns", "softmax_rows", "f16", 65536, 4096, 0.90, ROWS),
    point("softmax f16, 1024 columns", "softmax_rows", "f16", 262144, 1024, 0.90, ROWS),
    point("softmax f32, 2048 columns", "softmax_rows", "f32", 65536, 2048, 0.90, ROWS),
    point("softmax f32, 8192 columns", "softmax_rows", "f32", 16384, 8192, 0.57, ROWS),
    point("layer norm f16, 4096 columns", "layernorm_rows", "f16", 65536, 4096, 0.90, ROWS),
    point("layer norm f32, 2048 columns", "layernorm_rows", "f32", 65536, 2048, 0.90, ROWS),
    point("argmax f16, 4096 columns", "argmax_rows", "f16", 65536, 4096, 0.90, ROWS),
    point("argmax f32, 2048 columns", "argmax_rows", "f32", 65536, 2048, 0.90, ROWS),
    point("argmax f32, 150000 columns", "argmax_rows", "f32", 1024, 150000, 0.85, ROWS),
]


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

def measure_point(torch, one, rounds):
    result = {**{key: one[key] for key in ("name", "schedule", "dims", "bar")}, "unavailable": {}, "pass": False}
    kernel, shapes = open_kernel(one)
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
            times, result["rounds"] = measure(torch, runs, rounds)
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


def beside_copy(points):
    """Each rate over that of PyTorch's copy, and whether the bar is met."""
    first = points[0].get("times", {}).get("torch") if points else None
    for one in points:
        if not one.get("times") or not first or points[0]["name"] != POINTS[0]["name"]:
            continue
        one["of_copy"] = one["times"]["schedc"]["gb_sustained"] / first["gb_sustained"]
        share = one["ratio"] if one["schedule"] == POINTS[0]["schedule"] and "ratio" in one else one["of_copy"]
        one["met"] = share >= one["bar"]


# ---- other params

def variants(one):
    """All points of the space but those that the schedule refuses, in a fixed random order; the default first."""
    names, values = list(one["space"]), [one["space"][name] for name in one["space"]]
    all_ = [dict(zip(names, chosen)) for chosen in itertools.product(*values)]
    random.Random(1).shuffle(all_)
    return [{}, *all_]


def try_variant(torch, one, params, tensors, wanted):
    """`wanted`: the outputs of the default, which are as the specification has them. None: refused."""
    try:
        kernel, shapes = open_kernel({**one, "params": {**one["params"], **params}})
    except schedc.Error:
        return None
    entry = {"params": params, "pass": False}
    try:
        made = outputs(kernel, tensors)
        for tensor in made:
            tensor.zero_()
        ours = our_run(torch, kernel, tensors)
        ours()
        entry["pass"] = all(near(torch, x, y) for x, y in zip(made, wanted))
        last = launches(torch, ours, SWEEP_LAUNCHES)[-SWEEP_COUNTED:]
        entry["ms"] = statistics.median(last)
        entry["gb"] = bytes_of(kernel, shapes) / entry["ms"] * 1e-6
    except schedc.Error as error:
        entry["error"] = str(error).strip()
    finally:
        kernel.unload()
    return entry


def near(torch, made, wanted):
    """Up to roundings, of elements near zero those of an ordinary one."""
    return torch.allclose(made, wanted, rtol=NEAR, atol=NEAR * float(wanted.float().abs().mean()))


def outputs(kernel, tensors):
    return [tensor for of, tensor in zip(kernel.tensors, tensors) if is_written(of)]


def default_outputs(torch, one):
    """The tensors of a point, and the outputs of its default, which are compared with the specification."""
    kernel, shapes = open_kernel(one)
    try:
        tensors = make_tensors(torch, kernel, shapes)
        our_run(torch, kernel, tensors)()
        if not all(o["pass"] for o in verify(torch, kernel, tensors)):
            raise Wrong("the default is wrong")
        return tensors, [tensor.clone() for tensor in outputs(kernel, tensors)]
    finally:
        kernel.unload()


def sweep_point(torch, one, seconds):
    begun, found = time.monotonic(), []
    tensors, wanted = default_outputs(torch, one)
    for params in variants(one):
        if time.monotonic() - begun > seconds:
            break
        entry = try_variant(torch, one, params, tensors, wanted)
        if entry:
            found.append(entry)
    right = sorted((e for e in found if e["pass"]), key=lambda e: -e["gb"])
    print(f"{one['name']}: {len(found)} variants, {len(found) - len(right)} wrong or not built", flush=True)
    default = [e for e in right if not e["params"]]
    for entry in [*default, *right[:6]]:
        print(f"  {entry['gb']:6.0f} GB/s  {entry['params'] or 'default'}", flush=True)
    torch.cuda.empty_cache()
    return {"name": one["name"], "variants": found, "pass": len(right) == len(found)}


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
        print(f"{one['name']:32} {kernel.name:16} {size * 1e-9:6.2f} GB, {len(variants(one)) - 1} variants")


def measured(torch, args, points):
    document = {**environment(torch, schedc.__version__), "points": []}
    print(f"{document['device']}, PyTorch {document['torch']}; GB/s, cold / sustained\n")
    begun = time.monotonic()
    for i, one in enumerate(points):
        left = args.seconds - (time.monotonic() - begun)
        try:
            result = (sweep_point(torch, one, left / (len(points) - i)) if args.sweep
                      else measure_point(torch, one, args.rounds))
        except (schedc.Error, Wrong) as error:
            result = {"name": one["name"], "pass": False, "error": str(error).strip()}
        except Exception:  # of PyTorch's, CUDA's or this script's: the other points are measured all the same
            result = {"name": one["name"], "pass": False, "error": traceback.format_exc().strip()}
        document["points"].append(result)
        if not args.sweep:
            beside_copy(document["points"])
            line(result)
        write(args.out, document)
    return document


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="REGEX", help="points whose name matches")
    parser.add_argument("--out", metavar="FILE", help="write JSON")
    parser.add_argument("--rounds", type=int, help="of sustained turns (default: as peers.py has it)")
    parser.add_argument("--sweep", action="store_true", help="other params for tuning")
    parser.add_argument("--seconds", type=float, default=240, help="of a sweep")
    parser.add_argument("--dry-run", action="store_true", help="check every point's kernel; needs no GPU")
    args = parser.parse_args()
    args.out = args.out and os.path.abspath(args.out)
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    points = [one for one in POINTS if not args.only or re.search(args.only, one["name"])]
    if not points:
        parser.error("no such point")
    if args.dry_run:
        describe_points(points)
        return 0
    torch = find("memory.py")
    if not torch:
        return 3
    document = measured(torch, args, points)
    wrong = sum(not p["pass"] for p in document["points"])
    print(f"\n{len(points) - wrong} passed, {wrong} failed, 0 skipped")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
