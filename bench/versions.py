#!/usr/bin/env python3
"""What a change of the compiler costs: two trees of schedc, each with its schedules, measured in turns on one GPU.

  bench/versions.py BEFORE AFTER [--turns 5] [--out FILE.json] [--only REGEX]

BEFORE and AFTER are folders with build/release/schedc. A turn calls `schedc bench` of each tree at each point, which
verifies the result; who is first changes with the turn. Printed are the medians over the turns in milliseconds, the
change of the sustained and of the cold time in percent, and how far the sustained times of one tree lie apart.
Exit code: 0, all ran and were right; 1 otherwise.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

import numpy

from calls import AS_WRITTEN, command_line, write

SECONDS = 60  # for a call
LONG = ["--set", "B=1", "--set", "M=16384", "--set", "N=16384", "--set", "H=16", "--set", "G=16"]

# What is measured: name, options of `schedc bench`.
POINTS = {
    "fa3_fwd": ["schedules/fa3_fwd.sched", "--case", "paper"],
    "fa3_stale": ["schedules/fa3_stale.sched", "--case", "paper"],
    "fa3_stale causal": ["schedules/fa3_stale.sched", "causal=true", "--case", "paper", *LONG],
    "fa3_stage3": ["schedules/fa3_stage3.sched", "--case", "paper"],
    "fa3_bwd": ["schedules/fa3_bwd.sched", "--case", "paper"],
    "fa3_bwd causal": ["schedules/fa3_bwd.sched", "causal=true", "--case", "paper"],
    "gqa_fwd_2wg": ["schedules/gqa_fwd_2wg.sched", "--case", "small", "--set", "B=4", "--set", "M=8192", "--set", "N=8192",
                    "--set", "H=16", "--set", "G=4"],
    "fa_varlen": ["schedules/fa_varlen.sched", "--case", "small", "--set", "B=4", "--set", "TQ=20000", "--set", "TK=20000",
                  "--set", "H=16", "--set", "G=16", "--set", "maxq=8000", "--in", "cq={starts}", "--in", "ck={starts}"],
    "gemm_pingpong": ["schedules/gemm_pingpong.sched", "--case", "small", "--set", "M=8192", "--set", "N=8192", "--set", "K=8192"],
}
STARTS = [0, 8000, 12000, 17000, 20000]  # of fa_varlen's sequences


def measure(tree, options):
    """{"sustained": ms, "cold": ms}; raises where the kernel does not run or is wrong."""
    done = subprocess.run(["build/release/schedc", "bench", *options, "--sample", "32", "--rounds", "1", "--format", "json"],
                          cwd=tree, capture_output=True, encoding="utf-8", timeout=SECONDS, check=False, env=AS_WRITTEN)
    if done.returncode:
        raise RuntimeError(f"{tree}: {' '.join(options)}: {(done.stderr + done.stdout)[-800:]}")
    got = json.loads(done.stdout)
    variant = got["variants"][0]
    return {"sustained": variant["sustained_ms"], "cold": variant["cold_ms"], "device": got["device"], "date": got["date"]}


def compare(runs):
    """The medians of each tree, the changes in percent, and the spread of the sustained times in percent."""
    row = {}
    for kind in ("sustained", "cold"):
        middle = {tree: statistics.median(run[kind] for run in runs[tree]) for tree in runs}
        row[kind] = {**middle, "change": 100 * (middle["after"] / middle["before"] - 1)}
    times = [[run["sustained"] for run in runs[tree]] for tree in runs]
    row["spread"] = max(100 * (max(t) / min(t) - 1) for t in times)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", metavar="FILE.json")
    parser.add_argument("--only", default="", metavar="REGEX")
    args = parser.parse_args()
    trees = {"before": args.before, "after": args.after}
    document, failed = {"command": command_line(), "turns": args.turns, "points": {}}, False
    with tempfile.NamedTemporaryFile(suffix=".npy") as starts:
        numpy.save(starts, numpy.array(STARTS, dtype=numpy.int32))
        starts.flush()
        print(f"{'':18} {'sustained ms':>19}  change  spread  {'cold ms':>19}  change")
        for name in (n for n in POINTS if re.search(args.only, n)):
            options = [word.format(starts=starts.name) for word in POINTS[name]]
            runs = {tree: [] for tree in trees}
            try:
                for turn in range(args.turns):
                    for tree in sorted(trees, reverse=turn % 2 == 0):
                        runs[tree].append(measure(os.path.abspath(trees[tree]), options))
            except (RuntimeError, subprocess.TimeoutExpired) as why:
                print(f"{name}: {why}", flush=True)
                document["points"][name] = {"error": str(why)}
                failed = True
                continue
            document["device"], document["date"] = runs["after"][-1]["device"], runs["after"][-1]["date"]
            row = compare(runs)
            document["points"][name] = row
            shown = [f"{row[k]['before']:9.4f} {row[k]['after']:9.4f}  {row[k]['change']:+5.2f} %" for k in ("sustained", "cold")]
            print(f"{name:18} {shown[0]}  {row['spread']:4.2f} %  {shown[1]}", flush=True)
            write(args.out, document)
    return failed


if __name__ == "__main__":
    sys.exit(main())
