#!/usr/bin/env python3
"""The most tempting mistake of a pipelined kernel, run: a stage is released while a product still reads it.

In schedules/fa3_fwd.sched V's stage is given back behind the wait for S, or as soon as P V has been issued; in
schedules/gemm.sched as soon as the product has been issued. `schedc check` rejects all three (R3.release); --unverified
builds them all the same. They and the shipped schedules run --repeat times on the same inputs. What is counted is how
many runs have other bits than the first; whether the first is right is decided by the specification. compute-sanitizer
is then asked about each, with the tools memcheck, racecheck and synccheck.

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

from calls import AS_WRITTEN

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ATTENTION = {"B": 1, "M": 2048, "N": 2048, "H": 16, "G": 16}
GEMM = {"M": 4096, "N": 4096, "K": 4096}
# schedule; params and dimensions to run; dimensions for the sanitizer; what is wrong: a name, and edits, each made once
CASES = [
    ("fa3_fwd", [([], ATTENTION), (["stages=1"], ATTENTION), (["causal=true"], ATTENTION)],
     {"B": 1, "M": 128, "N": 704, "H": 1, "G": 1},
     [("released behind wait s", [(r"wait s;  release k  ( *// 12)", r"wait s;  release k, v\1"),
                                  (r"wait o;  release v( *// 14, 15)", r"wait o\1")]),
      ("released when issued", [(r"( *)(release tensor)\n", r"\1\2;  release v\n"),
                                (r"wait o;  release v( *// 14, 15)", r"wait o\1")])]),
    ("gemm", [(["stages=2"], GEMM), (["stages=2", "BN=256"], GEMM)], {"M": 128, "N": 256, "K": 256},
     [("released when issued", [(r"wait acc;  release ab", r"release ab;  wait acc")])]),
]


def wrong(text, edits):
    for pattern, by in edits:
        text, n = re.subn(pattern, by, text)
        if n != 1:
            sys.exit(f"early_release: the schedule has changed: '{pattern}' is there {n} times")
    return text


def run(command, timeout=300):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout, env=AS_WRITTEN)
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


def write_schedules(folder, name, mistakes):
    """The shipped schedule and the wrong ones: what each does, and its path."""
    good = os.path.join(ROOT, "schedules", name + ".sched")
    with open(good, encoding="utf-8") as source:
        text = source.read()
    paths = [("as shipped", good)]
    for i, (what, edits) in enumerate(mistakes):
        paths.append((what, os.path.join(folder, f"{name}_{i}.sched")))
        with open(paths[-1][1], "w", encoding="utf-8") as file:
            file.write(wrong(text, edits))
    return paths


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build/release/schedc"))
    parser.add_argument("--repeat", type=int, default=1000)
    parser.add_argument("--out", help="a JSON file")
    args = parser.parse_args()
    checks, rows, tools = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for name, runs, small, mistakes in CASES:
            paths = write_schedules(folder, name, mistakes)
            for what, path in paths:
                code, _, err = run([args.schedc, "check", path])
                checks.append({"schedule": name, "what": what, "exit": code,
                               "codes": sorted(set(re.findall(r"error\[([\w.]+)\]", err)))})
            for params, dims in runs:
                for what, path in paths:
                    v = bench(args.schedc, path, params, dims, args.repeat)
                    right, differing = all(o["pass"] for o in v["outputs"]), v["differing"]
                    rows.append({"schedule": name, "what": what, "params": params, "dims": dims, "runs": args.repeat,
                                 "differing": differing, "first_is_right": right,
                                 "max_error": v["outputs"][0]["max_error"]})
                    print(f"{name:8} {' '.join(params):16} {what:24} {differing:4} of {args.repeat - 1} runs have other "
                          f"bits; the first is {'right' if right else 'wrong'}", flush=True)
            for tool in ("memcheck", "racecheck", "synccheck") if shutil.which("compute-sanitizer") else ():
                for what, path in paths:
                    said = sanitize(tool, args.schedc, path, runs[-1][0], small)
                    tools.append({"tool": tool, "schedule": name, "what": what, "said": said})
                    print(f"{name:8} {tool:12} {what:24} {said}", flush=True)
    result = {"date": datetime.date.today().isoformat(), "check": checks, "runs": rows, "compute_sanitizer": tools}
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
