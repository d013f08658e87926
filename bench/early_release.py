#!/usr/bin/env python3
"""The most tempting mistake of a pipelined attention kernel, run: V's stage is released after the wait for S.

The product P V that reads the stage was issued before that wait, and is still running. `schedc check` rejects the
schedule (R3.release); --unverified builds it all the same. Both schedules, the shipped one and the wrong one, run
--repeat times on the same inputs; what is counted is how many runs have other bits than the first, and whether the first
agrees with the specification. compute-sanitizer is then asked about both, with the tools memcheck, racecheck and
synccheck.

  early_release.py [--schedc build/release/schedc] [--repeat 1000] [--out bench/results/early_release.json]

Needs a Hopper GPU; about two minutes.
"""
import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHAPES = [  # name, params, dimensions
    ("one stage", ["stages=1"], {"B": 1, "M": 2048, "N": 2048, "H": 16, "G": 16}),
    ("two stages", [], {"B": 1, "M": 2048, "N": 2048, "H": 16, "G": 16}),
    ("two stages, causal", ["causal=true"], {"B": 1, "M": 2048, "N": 2048, "H": 16, "G": 16}),
]


def early(text):
    """The schedule with 'release v' moved from behind 'wait o' to behind 'wait s' in the main loop."""
    text, moved = re.subn(r"wait s;  release k  ( *// 12)", r"wait s;  release k, v\1", text)
    text, left = re.subn(r"wait o;  release v( *// 14, 15)", r"wait o\1", text)
    if moved != 1 or left != 1:
        sys.exit("early_release: schedules/fa3_fwd.sched has changed: mend early()")
    return text


def run(command, timeout=300):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout)
    return done.returncode, done.stdout, done.stderr


def bench(schedc, path, params, dims, repeat):
    command = [schedc, "bench", path, "--unverified", "--rounds", "0", "--repeat", str(repeat), "--format", "json"]
    command += [x for p in params for x in ("-p", p)] + [x for d in dims.items() for x in ("--set", "%s=%d" % d)]
    code, out, err = run(command)
    try:
        variant = json.loads(out)["variants"][0]
    except (ValueError, KeyError, IndexError):
        sys.exit(f"early_release: {' '.join(command)} has ended with {code}:\n{out}{err}")
    return variant


def sanitize(tool, schedc, path, params, dims):
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", schedc, "run", path, "--on", "cuda",
               "--unverified", "--sample", "1"]
    command += [x for p in params for x in ("-p", p)] + [x for d in dims.items() for x in ("--set", "%s=%d" % d)]
    try:
        code, out, err = run(command, 120)
    except subprocess.TimeoutExpired:
        return "not ended after 120 s"
    said = re.findall(r"========= (ERROR SUMMARY.*|RACECHECK SUMMARY.*)", out + err)
    return "; ".join(said) or f"exit code {code}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build/release/schedc"))
    parser.add_argument("--repeat", type=int, default=1000)
    parser.add_argument("--out", help="a JSON file")
    args = parser.parse_args()
    good = os.path.join(ROOT, "schedules/fa3_fwd.sched")
    with tempfile.TemporaryDirectory() as folder:
        bad = os.path.join(folder, "fa3_fwd_early.sched")
        with open(good, encoding="utf-8") as source, open(bad, "w", encoding="utf-8") as file:
            file.write(early(source.read()))
        code, _, err = run([args.schedc, "check", bad])
        rejected = re.findall(r"error\[([A-Za-z0-9.]+)\]", err)
        rows = []
        for name, params, dims in SHAPES:
            for which, path in (("released behind wait o", good), ("released behind wait s", bad)):
                v = bench(args.schedc, path, params, dims, args.repeat)
                right, differing = all(o["pass"] for o in v["outputs"]), v["differing"]
                rows.append({"shape": name, "schedule": which, "runs": args.repeat, "differing": differing,
                             "first_is_right": right, "max_error": v["outputs"][0]["max_error"]})
                print(f"{name:20} {which:24} {differing} of {args.repeat - 1} runs have other bits; "
                      f"the first is {'right' if right else 'wrong'}", flush=True)
        tools = []
        if shutil.which("compute-sanitizer"):
            small = {"B": 1, "M": 128, "N": 704, "H": 1, "G": 1}
            for tool in ("memcheck", "racecheck", "synccheck"):
                for which, path in (("released behind wait o", good), ("released behind wait s", bad)):
                    said = sanitize(tool, args.schedc, path, [], small)
                    tools.append({"tool": tool, "schedule": which, "said": said})
                    print(f"{tool:12} {which:24} {said}", flush=True)
    result = {"date": datetime.date.today().isoformat(), "check": {"exit": code, "codes": sorted(set(rejected))},
              "runs": rows, "compute_sanitizer": tools}
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
