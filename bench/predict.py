#!/usr/bin/env python3
"""How good is the cost model (schedc_predict)? Predictions, by the Python package (find_schedc.py), beside what was
measured.

  bench/predict.py [--results bench/results] [--out bench/results/predict.json] [--points]
  bench/predict.py --check         exit code 1 if the model no longer says, to the bit, what predict.json has

In: the measured points of ablation.json, peers.json, fa3_*.json, gemm_*.json and, if it is there, space.json
(bench/space.py). Of each group of points: Spearman's rank correlation of predicted and measured milliseconds at steady
state; the error of a prediction, in the median and at most; and how much longer than the best point the one takes that the
model would choose. Cycles are compared where the clock was measured.
"""
import argparse
import glob
import json
import os
import statistics
import sys

from calls import ROOT
from find_schedc import schedc

OUT = os.path.join("bench", "results", "predict.json")


def read(results, name):
    path = os.path.join(results, name)
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def of_variant(group, name, v):
    return {"group": group, "name": name, "file": v["file"], "kernel": v["kernel"], "params": v["params"],
            "dims": v["dims"], "ms": v["sustained_ms"], "clock_mhz": v.get("clock_mhz") or None}


def measured(results):
    """All points that are verified and measured, and whose schedule is in the repository as it was."""
    for table in read(results, "ablation.json").get("tables", []):
        for v in table.get("variants", []):
            yield of_variant("ablation " + table["name"], v["what"], v)
    for path in sorted(glob.glob(os.path.join(results, "fa3_*.json")) + glob.glob(os.path.join(results, "gemm_*.json"))):
        for v in read(results, os.path.basename(path)).get("variants", []):
            yield of_variant("single kernels", v["kernel"], v)
    with open(os.path.join("bench", "points.json"), encoding="utf-8") as file:
        points = {p["name"]: p for p in json.load(file)["points"]}
    for p in read(results, "peers.json").get("points", []):
        if "times" in p and p["name"] in points:
            yield {"group": "points", "name": p["name"], "file": p["schedule"], "kernel": points[p["name"]].get("kernel"),
                   "params": p["params"], "dims": p["dims"], "ms": p["times"]["schedc"]["sustained_ms"], "clock_mhz": None}
    for entry in read(results, "space.json").get("entries", []):
        for v in (v for v in entry.get("variants", []) if v.get("pass") and "sustained_ms" in v):
            yield of_variant("space " + entry["group"], v["variant"], v)


def predict(point):
    said = schedc.load(point["file"], point["kernel"], params=point["params"]).predict(**point["dims"])
    figures = ("ms", "cycles", "clock_mhz", "tensor_use", "waves", "bound")
    return {**point, "predicted": {name: getattr(said, name) for name in figures}}


def ranks(values):
    """From 1; equal values share the mean of theirs."""
    order = sorted(values)
    return [order.index(v) + (order.count(v) + 1) / 2 for v in values]


def spearman(a, b):
    a, b = ranks(a), ranks(b)
    mean = (len(a) + 1) / 2
    both = sum((x - mean) * (y - mean) for x, y in zip(a, b))
    own = sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)
    return both / own ** 0.5 if own else 1.0


def judge(name, points):
    said, took = [p["predicted"]["ms"] for p in points], [p["ms"] for p in points]
    errors = [abs(s / t - 1) for s, t in zip(said, took)]
    cycles = [abs(p["predicted"]["cycles"] / (p["ms"] * p["clock_mhz"] * 1e3) - 1) for p in points if p["clock_mhz"]]
    chosen = took[said.index(min(said))]
    return {"group": name, "points": len(points), "rank": spearman(said, took), "error": statistics.median(errors),
            "most": max(errors), "cycles_error": statistics.median(cycles) if cycles else None,
            "chosen": chosen / min(took)}


def compare(results):
    groups = {}
    for point in measured(results):
        if os.path.exists(point["file"]) and not point["file"].startswith("build"):
            groups.setdefault(point["group"], []).append(predict(point))
    points = [p for group in groups.values() for p in group]
    return {"groups": [judge(name, group) for name, group in groups.items()] + [judge("all", points)], "points": points}


def show(document, with_points):
    print(f"{'group':38} {'points':>6} {'rank':>6} {'error':>6} {'most':>6} {'cycles':>6} {'chosen':>6}")
    for g in document["groups"]:
        cycles = f"{100 * g['cycles_error']:5.1f}%" if g["cycles_error"] is not None else ""
        print(f"{g['group']:38} {g['points']:6} {g['rank']:6.2f} {100 * g['error']:5.1f}% {100 * g['most']:5.1f}% {cycles:>6} "
              f"{g['chosen']:6.3f}")
    for p in document["points"] if with_points else []:
        said = p["predicted"]
        print(f"{p['group']:38} {p['name'][:44]:44} {p['ms']:8.3f} ms, predicted {said['ms']:8.3f} "
              f"({100 * (said['ms'] / p['ms'] - 1):+5.1f}%), tensor cores {100 * said['tensor_use']:3.0f}%, {said['bound']}")


def differing(now, kept):
    """Points whose prediction is not the one that is kept; they are in the order of the results."""
    before = kept.get("points", [])
    if [p["name"] for p in now["points"]] != [p["name"] for p in before]:
        yield "predict.json has other points"
        return
    for p, had in zip(now["points"], before):
        said, kept_said = p["predicted"], had["predicted"]
        if said != kept_said:
            yield f"{p['group']}: {p['name']}: {said['ms']!r} ms, not {kept_said['ms']!r}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", default=os.path.join("bench", "results"))
    parser.add_argument("--out")
    parser.add_argument("--points", action="store_true", help="print each point, too")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    os.chdir(ROOT)
    document = compare(args.results)
    if args.check:
        other = list(differing(document, read(args.results, "predict.json")))
        print("".join(f"FAIL {line}\n" for line in other), end="")
        print(f"{len(document['points']) - len(other)} passed, {len(other)} failed, 0 skipped")
        return 1 if other else 0
    show(document, args.points)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
