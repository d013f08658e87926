#!/usr/bin/env python3
"""Our kernels beside cuDNN, FlashAttention-2 and -3, and cuBLAS: one process, the same inputs, in turns.

  bench/peers.py [--points bench/points.json] [--only REGEX] [--out bench/results/peers.json] [--rounds N] [--dry-run]

Every point's output is compared with its specification (a sample of it, in float64, and all of it for NaN); a point
that is wrong has no figures. `cold`: the median over 3 rounds of a 150 ms pause, 5 launches to warm up and 20 that
count. `sustained`: the mean of launches back to back for 2 s, of which the first second does not count, and of these means
the median over the rounds; before the first round all together run for 3 s (runtime/cuda/measure.c says why so long). The
ratio is of sustained times. The clock of the multiprocessors and the board's power are means over the launches that count
(sensors.py).
A point may do `without` some peers, and have inputs `filled` with a number, or all `inputs` of a kind that `schedc bench
--help` lists. Kernels with 8-bit operands are measured beside 16-bit peers, on the same numbers. Params for tuning are those
of the package's table of the GPU for the dimensions, where it has any. The peers run through PyTorch:
scaled_dot_product_attention with its cuDNN and FlashAttention-2 backends, its gradients with cuDNN's, and matmul (cuBLAS).
FlashAttention-3 takes part where it is installed (flash3.py): in forward passes, in 8 bits too, and in backward passes. A
peer whose O or gradients are not ours within a tenth has no figures. Ours run through the Python package (find_schedc.py).
Exit code: 0 all right, 1 a result is wrong, a kernel does not build, or there is no package, 3 no GPU or no PyTorch.
"""
import argparse
import math
import os
import statistics
import sys
import time
import traceback

import flash3
from calls import read_points, setting, write
from find_schedc import schedc
from pytorch import environment, find, workspace
from sensors import Sensors

COLD_ROUNDS, WARM_UP, COLD = 3, 5, 20
TURN_MS, SETTLING_MS, WARMING_MS, GROUPS = 2000, 1000, 3000, 12  # of launches back to back, as runtime/cuda/measure.c has them
ROUNDS = 2  # sustained
TYPES = {"f32": ("float32", 4), "f16": ("float16", 2), "bf16": ("bfloat16", 2), "i32": ("int32", 4),
         "e4m3": ("float8_e4m3fn", 1), "e5m2": ("float8_e5m2", 1)}  # PyTorch's, and the bytes of an element
ALIGNED = 64  # an address that any tensor may have
OPERATIONS = 2_500_000_000  # of a comparison: as many places of the specification as fit, about half a second


# ---- times

def launches(torch, run, n, sensors=None, settled=0):
    """Milliseconds of each of n launches back to back; what the sensors read from the launch `settled` on until the last ended."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(n + 1)]
    events[0].record()
    for event in events[1:]:
        run()
        event.record()
    readings = []
    while sensors and not events[-1].query():
        if events[settled].query():
            readings.append(sensors.read())
    torch.cuda.synchronize()
    return [a.elapsed_time(b) for a, b in zip(events, events[1:])], [one for one in readings if one]


def go_on_for(torch, run, budget, one, sensors=None):
    """Launches back to back for so many ms, where one takes about `one`: the mean milliseconds of a launch, without those of the
    time in which the chip finds the clock at which this program runs; and what the sensors read meanwhile."""
    each = math.ceil(budget / one / GROUPS)

    def group():
        for _ in range(each):
            run()
    settling = min(SETTLING_MS, budget / 2)
    settled = math.ceil(settling / (one * each))
    groups = settled + math.ceil((budget - settling) / (one * each))
    took, readings = launches(torch, group, groups, sensors, settled)
    return statistics.fmean(took[settled:]) / each, readings


def measure(torch, runs, rounds):
    """For each of the named functions: its times in ms, its clock and power. They take turns, each round begun by another one: what
    ran before, and how warm it left the chip, is the same for all."""
    def in_turns(n):
        order = list(runs.items())
        return order[n % len(order):] + order[:n % len(order)]
    sensors = Sensors(torch.cuda.get_device_properties(0).uuid)
    cold = {name: [] for name in runs}
    sustained = {name: [] for name in runs}
    readings = {name: [] for name in runs}
    for n in range(COLD_ROUNDS):
        for name, run in in_turns(n):
            time.sleep(0.15)
            launches(torch, run, WARM_UP)
            cold[name] += launches(torch, run, COLD)[0]
    one = {name: statistics.median(times) for name, times in cold.items()}
    for name, run in runs.items():  # the chip has cooled in the pauses
        go_on_for(torch, run, WARMING_MS / len(runs), one[name])
    for n in range(rounds):
        for name, run in in_turns(n):
            ms, read = go_on_for(torch, run, TURN_MS, one[name], sensors)
            sustained[name].append(ms)
            readings[name] += read
    return {name: {"cold_ms": statistics.median(cold[name]), "sustained_ms": statistics.median(sustained[name]),
                   "least_ms": min(sustained[name]), "most_ms": max(sustained[name]), **means(readings[name])} for name in runs}


def means(readings):
    """Nothing, if nothing was read."""
    return {key: statistics.fmean(values) for key, values in zip(("clock_mhz", "power_w"), zip(*readings))}


# ---- one point

class Wrong(Exception):
    """What a kernel makes is not what it is to make."""


def open_kernel(point, store=None):
    """The kernel of a point, with params for tuning by its dimensions, where a store knows them; and shapes."""
    by_shape = {"store": store, "dims": point["dims"]} if store else {}
    kernel = schedc.load(point["schedule"], point.get("kernel"), case=point.get("case"), params=point["params"],
                         **by_shape)
    return kernel, [kernel.shape(tensor.name, **point["dims"]) for tensor in kernel.tensors]


def params_of(kernel):
    """As the results keep them: texts, as a schedule has them."""
    return {name: setting(name, param.value).partition("=")[2] for name, param in kernel.params.items()}


def work_of(kernel, shapes):
    """What a launch takes: no element is looked at, so it does not matter where tensors of these shapes lie."""
    return kernel.work(**{tensor.name: schedc.Memory(ALIGNED, tensor.type, shape)
                          for tensor, shape in zip(kernel.tensors, shapes)})


def is_written(tensor):
    return tensor.direction != "in"


def make_tensors(torch, kernel, shapes, filled={}, inputs=None):
    """Normal inputs, those of a kind, or `filled` with a number, and outputs full of NaN, on the GPU."""
    if inputs:
        drawn = [torch.empty(shape, dtype=getattr(torch, TYPES[tensor.type][0])) for tensor, shape in zip(kernel.tensors, shapes)]
        kernel.draw(**{tensor.name: made for tensor, made in zip(kernel.tensors, drawn)}, kind=inputs)
        return [made.cuda() for made in drawn]
    torch.manual_seed(0)
    tensors = []
    for tensor, shape in zip(kernel.tensors, shapes):
        if tensor.name in filled:
            made = torch.full(shape, filled[tensor.name], device="cuda", dtype=torch.float32)
        elif is_written(tensor):
            made = torch.full(shape, math.nan, device="cuda", dtype=torch.float32)
        else:
            made = torch.randn(shape, device="cuda", dtype=torch.float32)
        tensors.append(made.to(getattr(torch, TYPES[tensor.type][0])).contiguous())
    return tensors


def our_run(torch, kernel, tensors):
    """A function that launches on the current stream, in a workspace that it keeps."""
    tensors = tuple(tensors)
    kernel.load()
    room = kernel.workspace_size(tensors)
    kept, at = workspace(torch, room)

    def run():
        kernel.launch(tensors, stream=torch.cuda.current_stream().cuda_stream, workspace=at, workspace_bytes=room)
    run.keeps = kept
    return run


def give(torch, kernel, tensors):
    """What a sequence is given, in place of normal numbers: of a backward pass, the forward's outputs."""
    given = kernel.given()
    if not given:
        return
    try:
        made = [t for tensor, t in zip(given.tensors, tensors) if is_written(tensor)]
        for tensor in made:
            tensor.fill_(math.nan)
        our_run(torch, given, tensors)()
        if any(bool(torch.isnan(tensor).any()) for tensor in made):
            raise Wrong(f"NaN in what {kernel.name} is given")
    finally:
        given.unload()


def verify(torch, kernel, tensors):
    """The outputs of the run just made, against the specification."""
    torch.cuda.synchronize()
    differences = kernel.compare(operations=OPERATIONS, **{of.name: t.cpu() for of, t in zip(kernel.tensors, tensors)})
    return [{"tensor": d.tensor, "compared": d.elements, "elements": d.total, "unwritten": d.unwritten,
             "overflowed": d.overflowed, "unproven": d.unproven, "looseness": d.looseness,
             "max_error": d.max_error, "max_allowed": d.max_allowed, "mean_error": d.mean_error,
             "mean_allowed": d.mean_allowed, "pass": d.passed} for d in differences]


def sdpa(torch, q, k, v, causal):
    """PyTorch's attention of heads before rows; of grouped heads, if there are fewer of keys than of queries."""
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])


def attention_peers(torch, kernel, point, tensors):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    named = {tensor.name: t for tensor, t in zip(kernel.tensors, tensors)}
    q, k, v = (named[name].transpose(1, 2) for name in "QKV")
    if q.element_size() == 1:  # cuDNN's attention through PyTorch takes 16 bits
        q, k, v = (x.to(torch.float16) for x in (q, k, v))
    causal = bool(point["params"].get("causal", False))

    def through(backend):
        def run():
            with sdpa_kernel(backend):
                return sdpa(torch, q, k, v, causal).transpose(1, 2)
        return run
    return {"cudnn": through(SDPBackend.CUDNN_ATTENTION), "flash2": through(SDPBackend.FLASH_ATTENTION),
            **with_flash3(torch, named, causal)}


def with_flash3(torch, named, causal):
    """FlashAttention-3, if it is installed: 8-bit operands as they are, each (batch, group) with the scale 1."""
    q, k, v = (named[name] for name in "QKV")
    found = flash3.find(torch, 8 * q.element_size())
    if not found:
        return {}
    scales = {}
    if q.element_size() == 1:
        one = torch.ones(q.shape[0], k.shape[2], device="cuda", dtype=torch.float32)
        scales = {"q_descale": one, "k_descale": one, "v_descale": one}
    return {"flash3": lambda: flash3.forward(found[0], q, k, v, causal, **scales)[0]}


def backward_peers(torch, kernel, point, tensors):
    """The gradients alone: the forward is run once, by the first call."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    named = {tensor.name: t for tensor, t in zip(kernel.tensors, tensors)}
    inputs = [named[name].transpose(1, 2).detach().requires_grad_() for name in "QKV"]
    gradient, outputs = named["dO"].transpose(1, 2), []
    causal = bool(point["params"].get("causal", False))

    def run():
        if not outputs:
            with torch.enable_grad(), sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                outputs.append(sdpa(torch, *inputs, causal))
        return [of.transpose(1, 2) for of in torch.autograd.grad(outputs, inputs, gradient, retain_graph=True)]
    theirs = flash3.find(torch, 16)
    if not theirs:
        return {"cudnn": run}
    return {"cudnn": run, "flash3": flash3.gradients(torch, theirs[0], *(named[name] for name in "QKV"), named["dO"], causal)}


def gemm_peers(torch, kernel, point, tensors):
    """Of 8-bit operands with scales that are all 1: one for a whole tensor, and sums of 14 bits, as `levels = 1` has them."""
    named = {tensor.name: t for tensor, t in zip(kernel.tensors, tensors)}
    a, b, c = (named[name] for name in "ABC")
    out = torch.empty_like(c)
    if a.element_size() > 1:
        return {"cublas": lambda: torch.matmul(a, b.t(), out=out)}
    one = torch.ones((), device="cuda", dtype=torch.float32)
    coarse = int(point["params"].get("levels", 1)) == 1
    return {"cublas": lambda: torch._scaled_mm(a, b.t(), one, one, out_dtype=c.dtype, use_fast_accum=coarse)}


PEERS = {"attention": (attention_peers, "cudnn"), "attention backward": (backward_peers, "cudnn"),
         "gemm": (gemm_peers, "cublas")}


def far_apart(made, ours):
    made, ours = made.float(), ours.float()
    return not float((made - ours).abs().mean()) < 0.1 * float(ours.abs().mean())


def usable(torch, peers, result, ours=()):
    """Those peers that run here; why the others do not. `ours`: O of a forward pass, or the gradients; products are not
    looked at."""
    runs = {}
    for name, run in peers.items():
        try:
            with torch.no_grad():
                made = run()
                if any(map(far_apart, made if isinstance(made, list) else [made], ours)):
                    raise Wrong("its results are not ours")
            torch.cuda.synchronize()
            runs[name] = run
        except Exception as error:  # whatever PyTorch raises
            result["unavailable"][name] = (str(error).strip() or repr(error)).splitlines()[0]
    return runs


def measure_point(torch, store, point, rounds):
    result = {"name": point["name"], "schedule": point["schedule"], "dims": point["dims"], "bar": point.get("bar"),
              "unavailable": {}, "pass": False}
    kernel, shapes = open_kernel(point, store)
    result["params"] = params_of(kernel)
    try:
        tensors = make_tensors(torch, kernel, shapes, point.get("filled", {}), point.get("inputs"))
        give(torch, kernel, tensors)
        ours = our_run(torch, kernel, tensors)
        ours()
        result["outputs"] = verify(torch, kernel, tensors)
        result["pass"] = all(o["pass"] for o in result["outputs"])
        if not result["pass"]:
            return result
        work = work_of(kernel, shapes)
        make_peers, first = PEERS[point["peer"]]
        peers = make_peers(torch, kernel, point, tensors)
        for name in point.get("without", []):
            del peers[name]
        written = {of.name: t for of, t in zip(kernel.tensors, tensors) if is_written(of)}
        results = [written[name] for name in ("O", "dQ", "dK", "dV") if name in written]
        runs = {"schedc": ours, **usable(torch, peers, result, results)}
        with torch.no_grad():
            times = measure(torch, runs, rounds)
        result["rounds"] = rounds
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
        kernel.unload()
        torch.cuda.empty_cache()
    return result


# ---- what is printed

def head():
    print(f"{'':42} {'schedc':>15} {'cuDNN, cuBLAS':>15} {'flash-attn 2':>15} {'flash-attn 3':>15}   ratio    bar")


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
    print(f"{result['name']:42} {cell('schedc'):>15} {cell('cudnn', 'cublas'):>15} {cell('flash2'):>15} "
          f"{cell('flash3'):>15}  {ratio} {bar}",
          flush=True)
    for name, why in result["unavailable"].items():
        print(f"  {name} does not run: {why}", flush=True)


def describe_points(points):
    """--dry-run: every point's kernel is checked; what it would take."""
    for point in points:
        kernel, shapes = open_kernel(point)
        work, size = work_of(kernel, shapes), bytes_of(kernel, shapes)
        print(f"{point['name']:42} {kernel.name:14} {(work.said or work.products) * 1e-12:7.3f} TFLOP "
              f"{work.products * 1e-12:7.3f} of products {size * 1e-9:6.2f} GB")


def bytes_of(kernel, shapes):
    """Of inputs and outputs, each once."""
    return sum(TYPES[tensor.type][1] * math.prod(shape) for tensor, shape in zip(kernel.tensors, shapes))


# ---- the program

def measure_all(document, points, measure_one, tell, out):
    """Measures the points, with params for tuning from the GPU's table, tells of each and writes it as it comes. The exit code."""
    store = schedc.Store.shipped(document["device"])
    document["table"] = store and os.path.basename(store.path)
    document["points"] = []
    for point in points:
        try:
            result = measure_one(store, point)
        except (schedc.Error, Wrong) as error:
            result = {"name": point["name"], "pass": False, "error": str(error).strip()}
        except Exception:  # of PyTorch's, CUDA's or this script's: the other points are measured all the same
            result = {"name": point["name"], "pass": False, "error": traceback.format_exc().strip()}
        document["points"].append(result)
        tell(result)
        write(out, document)
    wrong = sum(not p["pass"] for p in document["points"])
    print(f"\n{len(points) - wrong} passed, {wrong} failed, 0 skipped")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--points", default=os.path.join(here, "points.json"))
    parser.add_argument("--only", metavar="REGEX", help="points whose name matches")
    parser.add_argument("--out", metavar="FILE", help="write JSON")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of sustained turns (default: %(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="check every point's kernel; needs no GPU")
    args = parser.parse_args()
    os.chdir(os.path.dirname(here))
    points = read_points(args.points, args.only)
    if not points:
        parser.error("no such point")
    if args.dry_run:
        describe_points(points)
        return 0
    torch = find("peers.py")
    if not torch:
        return 3
    document = environment(torch, schedc.__version__)
    document["flash3"] = flash3.told(torch)
    print(f"{document['device']}, PyTorch {document['torch']}, cuDNN {document['cudnn']}; TFLOP/s, cold / sustained\n")
    head()
    return measure_all(document, points, lambda store, point: measure_point(torch, store, point, args.rounds), line, args.out)


if __name__ == "__main__":
    sys.exit(main())
