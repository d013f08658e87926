#!/usr/bin/env python3
"""What inputs cost that make warps leave the fast path, for every configuration of forward attention that is shipped.

  bench/adversarial.py [--schedc build/release/schedc] [--out bench/results/adversarial.json] [--only REGEX] [--dry-run]

A configuration is a schedule with parameters, as points.json has them. Each is run twice on every kind of input
(`schedc bench --help` lists them):
- at ragged lengths, three times with the same bits, all of the result compared with the specification;
- at the point's size, cut to 8448 tokens, a sample of the result compared: measured in turns within one call of
  `schedc bench`. A slowdown is the time on a kind of input over that on normal numbers, sustained.
Exit code: 0 all right, 1 a result is wrong or a kernel does not build, 3 no GPU.
"""
import argparse
import os
import re
import sys

from calls import bench, build, command_line, read_points, setting, write

KINDS = ["normal", "outliers", "large", "equal", "spike", "sink", "ramp", "ramp-down"]
TOKENS = 8448
RAGGED = {"B": 1, "M": 300, "N": 1100, "H": 2, "G": 1}
# What is kept of a variant.
KEYS = ["inputs", "pass", "repeats", "differing", "outputs", "cold_ms", "sustained_ms", "least_ms", "most_ms",
        "tflops_cold", "tflops_sustained", "clock_mhz", "power_w", "tensor_utilisation", "spread"]


def configurations(points):
    """{name: ((schedule, settings), dims)}, each once; the size is that of its first point, cut to TOKENS."""
    found = {}
    for point in points:
        if point["peer"] != "attention":
            continue
        settings = [setting(*p) for p in sorted(point["params"].items())]
        name = " ".join([os.path.basename(point["schedule"]).replace(".sched", ""), *settings])
        length = min(TOKENS, point["dims"]["M"], point["dims"]["N"])
        dims = {**point["dims"], "B": TOKENS // length, "M": length, "N": length}
        found.setdefault(name, ((point["schedule"], settings), dims))
    return found


def call(args, document, configuration, dims, options):
    """One call of `schedc bench` on all kinds: (its entry in the document, exit code)."""
    file, settings = configuration
    # The case gives no parameters: these are the schedule's defaults, as in peers.py.
    entry, code = bench(args, ["--inputs", ",".join(KINDS), *options, file, *settings,
                               *(setting(*dim) for dim in dims.items())], document)
    if "variants" in entry:
        entry["dims"], entry["params"] = dims, entry["variants"][0]["params"]
        entry["variants"] = [{key: v[key] for key in KEYS if key in v} for v in entry["variants"]]
    return entry, code


def slowdowns(measured, key):
    """{kind: time over that of normal inputs}; empty if nothing was measured."""
    times = {v["inputs"]: v.get(key) for v in measured.get("variants", [])}
    return {kind: t / times["normal"] for kind, t in times.items() if t and kind != "normal"}


def show(name, entry):
    parts = entry["ragged"], entry["measured"]
    wrong = [f"{what} {v['inputs']}" for what, part in zip(("ragged", "measured"), parts)
             for v in part.get("variants", []) if not v.get("pass", True)]
    errors = [part["error"] for part in parts if "error" in part]
    if not entry["slowdown"]:
        why = "WRONG: " + ", ".join(wrong) if wrong else "\n".join(errors) or "not measured"
        print(f"{name:46} {why}", flush=True)
        return
    normal = entry["measured"]["variants"][KINDS.index("normal")]["tflops_sustained"]
    print(f"{name:46} {normal:8.1f}" + "".join(f"{entry['slowdown'][kind]:11.3f}" for kind in KINDS[1:]), flush=True)


def one(args, document, configuration, dims):
    ragged, first = call(args, document, configuration, RAGGED, ["--rounds", "0", "--repeat", "3", "--sample", "0"])
    measured, second = call(args, document, configuration, dims, ["--rounds", "1", "--sample", "128"])
    entry = {"ragged": ragged, "measured": measured, "slowdown": {}, "slowdown_cold": {}}
    if not first and not second:  # what is wrong has no figures
        entry["slowdown"] = slowdowns(measured, "sustained_ms")
        entry["slowdown_cold"] = slowdowns(measured, "cold_ms")
    return entry, [first, second]


def worst(document):
    """The largest slowdown of all, and where it is."""
    all_ = [{"slowdown": ratio, "configuration": name, "inputs": kind}
            for name, entry in document["configurations"].items() for kind, ratio in entry["slowdown"].items()]
    return max(all_, key=lambda w: w["slowdown"], default=None)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default="build/release/schedc")
    parser.add_argument("--points", default=os.path.join(here, "points.json"))
    parser.add_argument("--out", metavar="FILE", help="write JSON")
    parser.add_argument("--only", metavar="REGEX", help="configurations whose name matches")
    parser.add_argument("--dry-run", action="store_true", help="check the configurations; needs no GPU")
    args = parser.parse_args()
    os.chdir(os.path.dirname(here))
    chosen = {name: c for name, c in configurations(read_points(args.points, None)).items()
              if not args.only or re.search(args.only, name)}
    document = {"command": command_line(), "kinds": KINDS, "configurations": {}}
    codes = []
    print(f"{'slowdown, sustained':46} {'normal':>8}" + "".join(f"{kind:>11}" for kind in KINDS[1:]))
    if not args.dry_run:
        build(args.schedc, [configuration for configuration, _ in chosen.values()])
    for name, (configuration, dims) in chosen.items():
        entry, got = one(args, document, configuration, dims)
        codes += got
        document["configurations"][name] = entry
        document["worst"] = worst(document)
        show(name, entry)
        write(args.out, document)
        if 3 in got:  # no GPU: the others would say the same
            break
    if codes and document["worst"]:
        print("\nat worst {slowdown:.3f} ({configuration}, {inputs})".format(**document["worst"]))
    bad = sum(c != 0 for c in codes)
    print(f"\n{len(codes) - bad} passed, {bad} failed, {2 * len(chosen) - len(codes)} skipped")
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main())
