#!/usr/bin/env python3
"""Every shipped configuration on the model of a GPU: each kernel and sequence of schedules/ with its defaults and with the
parameters of each of its cases, with and without --debug-waits, on small lengths that no tile divides. The policies take
turns, and so do the inputs. Needs the host's C++ compiler, and nothing of CUDA.

  shipped.py --schedc build/release/schedc [-j 2] [--verbose] [NAME …]

NAME: schedules ("gemm"); without it all.
"""
import argparse
import itertools
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from configs import shipped

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
POLICIES = ["early", "late", "random"]
INPUTS = ["normal", "outliers", "equal", "spike"]
RAMPS = ["ramp", "ramp-down", "normal"]  # of fa3_stale: they leave its fast path
# Lengths; those of other schedules are attention's.
ATTENTION = "B=1 M=203 N=329 H=2 G=1"
LENGTHS = {
    "copy": "M=203 N=136", "softmax_rows": "M=67 N=328", "layernorm_rows": "M=67 N=328", "argmax_rows": "M=67 N=328",
    "gemm": "M=203 N=136 K=200", "gemm_roles": "M=203 N=136 K=200", "gemm_pingpong": "M=203 N=328 K=200",
    "gemm_cooperative": "M=203 N=328 K=200", "gemm_fp8": "M=203 N=328 K=208", "gemm_bias_gelu": "M=203 N=136 K=200",
    "mlp": "M=203 F=200",
    "fa_varlen": "", "fa_varlen_bwd": "",  # their cases have the lengths in a tensor
}


def run(schedc, name, unit, options, debug, turn):
    lengths = [word for length in LENGTHS.get(name, ATTENTION).split() for word in ("--set", length)]
    inputs = RAMPS if name == "fa3_stale" else INPUTS
    command = ["run", f"schedules/{name}.sched", unit, "--on", "model", "--case", "small", *lengths, *options, *debug, "--policy",
               POLICIES[turn % 3], "--seed", str(turn), "--inputs", inputs[turn % len(inputs)], "--sms", str(1 + turn % 4)]
    done = subprocess.run([schedc, *command], cwd=ROOT, capture_output=True, encoding="utf-8", timeout=120, check=False)
    return done.returncode, "schedc " + " ".join(command), done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "release", "schedc"))
    parser.add_argument("-j", type=int, default=2)
    parser.add_argument("--verbose", action="store_true", help="one line a run")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    schedc = os.path.abspath(args.schedc)
    names = args.names or sorted(f.removesuffix(".sched") for f in os.listdir(os.path.join(ROOT, "schedules")) if f.endswith(".sched"))
    jobs = []
    for name in names:
        turn = itertools.count()  # a schedule's runs are the same whatever others there are
        for unit, options in shipped(schedc, os.path.join(ROOT, "schedules", name + ".sched")):
            jobs += [(schedc, name, unit, options, debug, next(turn)) for debug in ([], ["--debug-waits"])]
    passed = failed = 0
    with ThreadPoolExecutor(args.j) as pool:
        for code, command, said in pool.map(lambda job: run(*job), jobs):
            passed, failed = passed + (code == 0), failed + (code != 0)
            if code:
                print("FAIL", command, said, sep="\n", flush=True)
            elif args.verbose:
                print("ok  ", command, flush=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
