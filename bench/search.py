#!/usr/bin/env python3
"""Does a short search find what a search of everything finds? Over more than 500 legal points of fa3_stale, d 128, full.

  bench/search.py [--schedc build/release/schedc] [--out bench/results/search.json] [--seconds 85] [--on model]

`schedc tune --strategy exhaustive` measures every program of the space below, and then `schedc tune` as a user calls it
(successive halving) has so many seconds. Each begins with an empty cache of machine code. Last, `schedc bench` verifies what
both chose, and the default, and measures them in turns of one call; if both chose the same program, it is measured once. Bar:
the short one is done within 90 seconds, and takes at most 1.01 of the time of what all has found.

--on model: a small shape and space on the model of a GPU, to try the script; no bar is asked for.
Exit code: 0 the bar is met; 1 it is not; 2 the command line is wrong; 3 there is no GPU.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

from calls import AS_WRITTEN, ROOT, command_line, write

SCHEDULE = "schedules/fa3_stale.sched"
PROBLEM = ["T=f16", "D=128", "causal=false"]
GPU = {"fixed": ["stages=2", "staged=true"], "dims": ["B=1", "M=16384", "N=16384", "H=16", "G=16"], "points": 500, "rounds": "4"}
MODEL = {"fixed": ["stages=2", "staged=true", "stale=true", "pair=1", "BM=128", "early=32", "qstages=1"],
         "dims": ["B=1", "M=130", "N=200", "H=1", "G=1"], "points": 2, "rounds": "1"}
WITHIN, SLOWER = 90, 1.01  # seconds, and times the best


def words(option, values):
    return [word for value in values for word in (option, value)]


def search(args, space, strategy, seconds):
    """One call of `schedc tune` with a cache of its own: its document, and how long all of it took."""
    command = [args.schedc, "tune", SCHEDULE, "fa3_stale", *words("-p", PROBLEM + space["fixed"]), *words("--set", space["dims"]),
               "--on", args.on, "--strategy", strategy, "--format", "json"]
    if seconds:
        command += ["--budget", f"{seconds}s"]
    with tempfile.TemporaryDirectory() as cache:
        began = time.time()
        done = subprocess.run(command, cwd=ROOT, env={**AS_WRITTEN, "SCHEDC_CACHE": cache}, capture_output=True,
                              encoding="utf-8", check=False)
        took = time.time() - began
    if done.returncode == 3:
        print(done.stderr, end="", file=sys.stderr)
        sys.exit(3)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    found = json.loads(done.stdout)[0]
    kept = {key: found[key] for key in ("device", "points", "legal", "programs", "trials", "failed", "noise", "hurried")}
    entry = {"command": [os.path.relpath(command[0], ROOT), *command[1:]], "seconds": took, **kept,
             "chosen": found["chosen"], "candidates": found["candidates"]}
    print(f"{strategy}: {found['trials']} trials of {found['programs']} programs in {took:.0f} s, chosen {found['chosen']['params']}",
          flush=True)
    return entry


def compared(args, space, chosen):
    """What was chosen, measured in turns of one call."""
    options = [*words("-p", PROBLEM + space["fixed"]), *words("--set", space["dims"]), "--on", args.on, "--format", "json",
               "--rounds", space["rounds"], "--sample", "512"]
    variants = [word for params in chosen
                for word in (SCHEDULE, *(f"{name}={value}" for name, value in params.items()))]
    done = subprocess.run([args.schedc, "bench", variants[0], "fa3_stale", *variants[1:], *options], cwd=ROOT, env=AS_WRITTEN,
                          capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise SystemExit(f"bench: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default="build/release/schedc")
    parser.add_argument("--out", default="bench/results/search.json")
    parser.add_argument("--seconds", type=int, default=85)
    parser.add_argument("--on", choices=["cuda", "model"], default="cuda")
    args = parser.parse_args()
    args.schedc, args.out = os.path.abspath(args.schedc), os.path.abspath(args.out)
    space = GPU if args.on == "cuda" else MODEL
    document = {"benchmark": "search", "command": command_line(), "bar": {"seconds": WITHIN, "ratio": SLOWER}}
    document["exhaustive"] = search(args, space, "exhaustive", 0)
    document["halving"] = search(args, space, "halving", args.seconds)
    chosen = [document[name]["chosen"]["params"] for name in ("exhaustive", "halving")]
    same = chosen[0] == chosen[1]
    bench = compared(args, space, chosen[:1] + chosen[1 + same:] + [{}])
    document.update({key: bench[key] for key in ("device", "driver", "date", "schedc") if key in bench})
    best, *found, default = bench["variants"]
    found = best if same else found[0]
    document["measured"] = {"exhaustive": best, "halving": found, "default": default}
    ratio = found["sustained_ms"] / best["sustained_ms"]
    enough = document["halving"]["legal"] >= space["points"]
    document["ratio"] = ratio
    document["pass"] = enough and ratio <= SLOWER and document["halving"]["seconds"] <= WITHIN
    write(args.out, document)
    print(f"{document['halving']['legal']} legal points; the short search took {document['halving']['seconds']:.0f} s; what it found "
          f"takes {ratio:.4f} of the time of what all has found{' (it is the same program)' if same else ''}, the default "
          f"{default['sustained_ms'] / best['sustained_ms']:.4f}")
    sys.exit(0 if document["pass"] or args.on == "model" else 1)


if __name__ == "__main__":
    main()
