#!/usr/bin/env python3
"""Our kernels beside cuDNN, FlashAttention-2 and cuBLAS: one process, the same inputs, in turns.

  bench/peers.py [--points bench/points.json] [--only REGEX] [--out bench/results/peers.json] [--rounds N] [--dry-run]

Every point's output is compared with its specification (a sample of it, in float64, and all of it for NaN); a point
that is wrong has no figures. `cold`: the median over 3 rounds of a 150 ms pause, 5 launches to warm up and 20 that
count. `sustained`: the median over rounds of turns of 400 ms of launches back to back, of which the first 150 do not count;
before them all together run for 700 ms, as the chip has cooled in the pauses. There are as many rounds as take about 3 s,
up to 6; but each of those that take turns begins one at least, and as many as the others. The ratio is of sustained times. A point may do `without` some
peers. Params for tuning are those of the GPU's table for the dimensions, where it has any. The peers run through PyTorch: scaled_dot_product_attention with its cuDNN and FlashAttention-2 backends, its
gradients with cuDNN's, and matmul (cuBLAS). Exit code: 0 all right, 1 a result is wrong or a kernel does not build, 3
no GPU or no PyTorch.
"""
import argparse
import json
import math
import os
import re
import statistics
import sys
import time
import traceback

from calls import write
from libschedc import OUT, SIZES, Failed, Kernel, Library, find_table
from pytorch import environment, find, launcher

COLD_ROUNDS, WARM_UP, COLD = 3, 5, 20
TURN_MS, SETTLING_MS, WARMING_MS, GROUPS = 400, 150, 700, 12  # of launches back to back, as runtime/cuda/measure.c has them
ROUNDS, MILLISECONDS = 6, 3000  # the most sustained rounds of a point, and about how long they may take
TABLES = os.path.join("schedules", "tuned")
OPERATIONS = 2_500_000_000  # of a comparison: as many places of the specification as fit, about half a second


# ---- times

def launches(torch, run, n):
    """Milliseconds of each of n launches back to back."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(n + 1)]
    events[0].record()
    for event in events[1:]:
        run()
        event.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) for a, b in zip(events, events[1:])]


def go_on_for(torch, run, budget, one):
    """Launches back to back for so many ms, where one takes about `one`: the milliseconds of a launch in each of some groups,
    without those in which the chip has not yet found the clock at which this program runs (runtime/cuda/duration.c)."""
    each = max(1, round(budget / one / GROUPS))

    def group():
        for _ in range(each):
            run()
    took = [ms / each for ms in launches(torch, group, max(1, min(GROUPS, round(budget / one / each))))]
    return took[min(len(took) // 2, math.ceil(SETTLING_MS / (one * each))):]


def measure(torch, runs, rounds):
    """For each of the named functions: its times in ms, and how many rounds were sustained. They take turns, each round
    begun by another one: what ran before, and how warm it left the chip, is the same for all."""
    def in_turns(n):
        order = list(runs.items())
        return order[n % len(order):] + order[:n % len(order)]
    cold = {name: [] for name in runs}
    sustained = {name: [] for name in runs}
    spread = {name: [] for name in runs}
    for n in range(COLD_ROUNDS):
        for name, run in in_turns(n):
            time.sleep(0.15)
            launches(torch, run, WARM_UP)
            cold[name] += launches(torch, run, COLD)
    if rounds is None:
        rounds = len(runs) * max(1, min(ROUNDS // len(runs), round(MILLISECONDS / TURN_MS / len(runs) ** 2)))
    one = {name: statistics.median(times) for name, times in cold.items()}
    for name, run in runs.items():  # the chip has cooled in the pauses
        go_on_for(torch, run, WARMING_MS / len(runs), one[name])
    for n in range(rounds):
        for name, run in in_turns(n):
            last = go_on_for(torch, run, TURN_MS, one[name])
            sustained[name].append(statistics.median(last))
            spread[name] += last
    return {name: {"cold_ms": statistics.median(cold[name]), "sustained_ms": statistics.median(sustained[name]),
                   "least_ms": min(spread[name]), "most_ms": max(spread[name])} for name in runs}, rounds


# ---- one point

def open_kernel(library, point, store=None):
    kernel = Kernel(library, point["schedule"], point.get("kernel"), point["params"], point.get("case"), store, point["dims"])
    shapes = [kernel.shape(i, point["dims"]) for i in range(len(kernel.tensors))]
    return kernel, shapes


def torch_type(torch, kind):
    return {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i32": torch.int32,
            "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}[kind]


def make_tensors(torch, kernel, shapes):
    """Normal inputs, and outputs full of NaN, on the GPU."""
    torch.manual_seed(0)
    tensors = []
    for (_, kind, direction, _), shape in zip(kernel.tensors, shapes):
        if direction & OUT:
            made = torch.full(shape, math.nan, device="cuda", dtype=torch.float32)
        else:
            made = torch.randn(shape, device="cuda", dtype=torch.float32)
        tensors.append(made.to(torch_type(torch, kind)).contiguous())
    return tensors


def our_run(torch, kernel, tensors, shapes):
    kernel.load()
    return launcher(torch, kernel, kernel.describe([t.data_ptr() for t in tensors], shapes))


def give(torch, kernel, tensors, shapes):
    """What a sequence is given, in place of normal numbers: of a backward pass, the forward's outputs."""
    given = kernel.given()
    if not given:
        return
    try:
        made = [t for (_, _, direction, _), t in zip(given.tensors, tensors) if direction & OUT]
        for tensor in made:
            tensor.fill_(math.nan)
        our_run(torch, given, tensors, shapes)()
        if any(bool(torch.isnan(tensor).any()) for tensor in made):
            raise Failed(f"NaN in what {kernel.name} is given")
    finally:
        given.close()


def verify(torch, kernel, tensors, shapes):
    """The outputs of the run just made, against the specification."""
    torch.cuda.synchronize()
    host = [t.cpu() for t in tensors]
    errors = kernel.compare(kernel.describe([t.data_ptr() for t in host], shapes), OPERATIONS)
    return [{"tensor": e.tensor.decode(), "compared": e.elements, "elements": e.total, "unwritten": e.unwritten,
             "overflowed": e.overflowed, "unproven": bool(e.unproven), "looseness": e.looseness,
             "max_error": e.max_error, "max_allowed": e.max_allowed, "mean_error": e.mean_error,
             "mean_allowed": e.mean_allowed, "pass": bool(e.pass_)} for e in errors]


def attention_peers(torch, kernel, point, tensors):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    named = {name: t for (name, *_), t in zip(kernel.tensors, tensors)}
    q, k, v = (named[name].transpose(1, 2) for name in "QKV")
    causal = bool(point["params"].get("causal", False))

    def through(backend):
        def run():
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return run
    return {"cudnn": through(SDPBackend.CUDNN_ATTENTION), "flash2": through(SDPBackend.FLASH_ATTENTION)}


def backward_peers(torch, kernel, point, tensors):
    """The gradients alone: the forward is run once, by the first call."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    named = {name: t for (name, *_), t in zip(kernel.tensors, tensors)}
    inputs = [named[name].transpose(1, 2).detach().requires_grad_() for name in "QKV"]
    gradient, outputs = named["dO"].transpose(1, 2), []
    causal = bool(point["params"].get("causal", False))

    def run():
        if not outputs:
            with torch.enable_grad(), sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                outputs.append(torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=causal))
        return torch.autograd.grad(outputs, inputs, gradient, retain_graph=True)
    return {"cudnn": run}


def gemm_peers(torch, kernel, point, tensors):
    a, b, c = tensors
    out = torch.empty_like(c)
    return {"cublas": lambda: torch.matmul(a, b.t(), out=out)}


PEERS = {"attention": (attention_peers, "cudnn"), "attention backward": (backward_peers, "cudnn"),
         "gemm": (gemm_peers, "cublas")}


def usable(torch, peers, result):
    """Those peers that run here; why the others do not."""
    runs = {}
    for name, run in peers.items():
        try:
            with torch.no_grad():
                run()
            torch.cuda.synchronize()
            runs[name] = run
        except Exception as error:  # whatever PyTorch raises
            result["unavailable"][name] = (str(error).strip() or repr(error)).splitlines()[0]
    return runs


def measure_point(torch, library, store, point, rounds):
    result = {"name": point["name"], "schedule": point["schedule"], "dims": point["dims"], "bar": point.get("bar"),
              "unavailable": {}, "pass": False}
    kernel, shapes = open_kernel(library, point, store)
    result["params"] = kernel.params()
    try:
        tensors = make_tensors(torch, kernel, shapes)
        give(torch, kernel, tensors, shapes)
        ours = our_run(torch, kernel, tensors, shapes)
        ours()
        result["outputs"] = verify(torch, kernel, tensors, shapes)
        result["pass"] = all(o["pass"] for o in result["outputs"])
        if not result["pass"]:
            return result
        work = kernel.work(kernel.describe([t.data_ptr() for t in tensors], shapes))
        make_peers, first = PEERS[point["peer"]]
        peers = make_peers(torch, kernel, point, tensors)
        for name in point.get("without", []):
            del peers[name]
        runs = {"schedc": ours, **usable(torch, peers, result)}
        with torch.no_grad():
            times, result["rounds"] = measure(torch, runs, rounds)
        result["operations"] = work.said or work.products
        for one in times.values():
            one["tflops_cold"] = result["operations"] / one["cold_ms"] * 1e-9
            one["tflops_sustained"] = result["operations"] / one["sustained_ms"] * 1e-9
        result["times"] = times
        if first in times:
            result["ratio"] = times[first]["sustained_ms"] / times["schedc"]["sustained_ms"]
            result["ratio_cold"] = times[first]["cold_ms"] / times["schedc"]["cold_ms"]
            if result["bar"]:
                result["met"] = result["ratio"] >= result["bar"]
    finally:
        kernel.close()
        torch.cuda.empty_cache()
    return result


# ---- what is printed

def head():
    print(f"{'':42} {'schedc':>15} {'cuDNN, cuBLAS':>15} {'flash-attn 2':>15}   ratio    bar")


def line(result):
    if not result["pass"]:
        print(f"{result['name']:42} WRONG: {result.get('error') or [o for o in result['outputs'] if not o['pass']]}")
        return
    times = result["times"]

    def cell(*names):
        for name in names:
            if name in times:
                return f"{times[name]['tflops_cold']:.0f} / {times[name]['tflops_sustained']:.0f}"
        return "-"
    ratio = f"{result['ratio']:6.3f}" if "ratio" in result else "     -"
    bar = f"{result['bar']:6.2f} {'met' if result.get('met') else 'missed' if 'met' in result else ''}" if result["bar"] else ""
    print(f"{result['name']:42} {cell('schedc'):>15} {cell('cudnn', 'cublas'):>15} {cell('flash2'):>15}  {ratio} {bar}",
          flush=True)
    for name, why in result["unavailable"].items():
        print(f"  {name} does not run: {why}", flush=True)


def describe_points(library, points):
    """--dry-run: every point's kernel is checked; what it would take."""
    for point in points:
        kernel, shapes = open_kernel(library, point)
        work = kernel.work(kernel.describe([64] * len(shapes), shapes))
        size = sum(SIZES[t[1]] * max(1, n) for t, n in zip(kernel.tensors, map(product, shapes)))
        print(f"{point['name']:42} {kernel.name:14} {(work.said or work.products) * 1e-12:7.3f} TFLOP "
              f"{work.products * 1e-12:7.3f} of products {size * 1e-9:6.2f} GB")
        kernel.close()


def product(shape):
    n = 1
    for extent in shape:
        n *= extent
    return n


# ---- the program

def read_points(path, only):
    """Points whose name matches."""
    with open(path, encoding="utf-8") as file:
        return [p for p in json.load(file)["points"] if not only or re.search(only, p["name"])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--points", default=os.path.join(here, "points.json"))
    parser.add_argument("--only", metavar="REGEX", help="points whose name matches")
    parser.add_argument("--out", metavar="FILE", help="write JSON")
    parser.add_argument("--rounds", type=int, help="of sustained turns (default: see above)")
    parser.add_argument("--library", help="libschedc.so (default: build/release's)")
    parser.add_argument("--dry-run", action="store_true", help="check every point's kernel; needs no GPU")
    args = parser.parse_args()
    os.chdir(os.path.dirname(here))
    points = read_points(args.points, args.only)
    if not points:
        parser.error("no such point")
    library = Library(args.library)
    if args.dry_run:
        describe_points(library, points)
        return 0
    torch = find("peers.py")
    if not torch:
        return 3
    document = environment(torch, library)
    print(f"{document['device']}, PyTorch {document['torch']}, cuDNN {document['cudnn']}; TFLOP/s, cold / sustained\n")
    store = find_table(library, TABLES)
    document["table"] = store and store.path
    document["points"] = []
    head()
    for point in points:
        try:
            result = measure_point(torch, library, store, point, args.rounds)
        except Failed as error:
            result = {"name": point["name"], "pass": False, "error": str(error).strip()}
        except Exception:  # of PyTorch's, CUDA's or this script's: the other points are measured all the same
            result = {"name": point["name"], "pass": False, "error": traceback.format_exc().strip()}
        document["points"].append(result)
        line(result)
        write(args.out, document)
    wrong = sum(not p["pass"] for p in document["points"])
    print(f"\n{len(points) - wrong} passed, {wrong} failed, 0 skipped")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
