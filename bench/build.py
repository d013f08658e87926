#!/usr/bin/env python3
"""How long schedules take to become machine code, on the CPU alone: schedc's own part, up to CUDA C, and NVRTC's.

  bench/build.py [--schedc build/release/schedc] [--rounds 5] [--out FILE.json] [--only REGEX]

A round builds each point once, one after the other, without the cache. Printed are medians over the rounds in seconds, and
how far the rounds lie apart. NVRTC's part, of which ptxas is a third to a half, uses one core, so let nothing else run.
Exit code: 0, all were built; 1 otherwise.
"""
import argparse
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time

from calls import ROOT, SECONDS, command_line, setting, write

BARS = {"fa3_stale": 2.0, "fa3_bwd": 3.0}  # seconds
ATTENTION = [{"D": d, "causal": causal} for d in (64, 128, 256) for causal in (False, True)]
POINTS = [(name, params) for name in ("fa3_stale", "fa3_bwd") for params in ATTENTION]
POINTS += [("fa3_fwd", {}), ("fa3_fp8", {"D": 128}), ("gemm_pingpong", {}), ("softmax_rows", {})]


def named(name, params):
    words = [f"d{x}" if n == "D" else n for n, x in params.items() if x is not False]
    return " ".join([name, *words])


def build(schedc, name, params, ending):
    """What the build told as JSON, and the seconds of the whole call; raises where it does not build."""
    words = [word for p in params.items() for word in ("-p", setting(*p))]
    begun = time.monotonic()
    done = subprocess.run([schedc, "build", os.path.join("schedules", name + ".sched"), name, *words, "--no-cache", "--to", ending,
                           "-o", os.devnull, "--format", "json"], capture_output=True, encoding="utf-8", timeout=SECONDS, check=False)
    took = time.monotonic() - begun
    if done.returncode:
        raise RuntimeError(f"{named(name, params)}: {(done.stderr + done.stdout)[-800:]}")
    return json.loads(done.stdout), took


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return re.search(r"^model name\s*: (.*)$", file.read(), re.M).group(1)
    except (OSError, AttributeError):
        return platform.machine()


def one_round(schedc, points):
    for point in points:
        name, params = point["schedule"], point["params"]
        point["cuda_c"].append(build(schedc, name, params, "cu")[1])
        built, took = build(schedc, name, params, "cubin")
        point["nvrtc"].append(built["seconds"])
        point["whole"].append(took)
        point["library"] = os.path.basename(built["nvrtc"].split(" ")[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default=os.path.join("build", "release", "schedc"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", metavar="FILE.json")
    parser.add_argument("--only", metavar="REGEX")
    args = parser.parse_args()
    os.chdir(ROOT)
    points = [{"name": named(name, params), "schedule": name, "params": params, "bar": BARS.get(name), "cuda_c": [], "nvrtc": [],
               "whole": []} for name, params in POINTS if re.search(args.only or "", named(name, params))]
    if not points or args.rounds < 1:
        parser.error("there is nothing to measure")
    document = {"command": command_line(), "date": datetime.datetime.now(datetime.timezone.utc).strftime("%FT%TZ"),
                "processor": processor(), "cores": os.cpu_count(), "rounds": args.rounds, "points": points}
    for n in range(args.rounds):
        try:
            one_round(args.schedc, points)
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
        print(f"round {n + 1} of {args.rounds}", file=sys.stderr, flush=True)
    write(args.out, document)
    for point in points:
        nvrtc = point["nvrtc"]
        print(f"{point['name']:24} CUDA C {statistics.median(point['cuda_c']):.3f} s, NVRTC {statistics.median(nvrtc):.2f} s "
              f"({min(nvrtc):.2f} to {max(nvrtc):.2f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
