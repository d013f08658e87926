#!/usr/bin/env python3
"""Schedules drawn from seeds (random_kernels.py): what `check` accepts must be right on the interpreter, under all
policies and at other lengths, and the text emitted for it on the model of a GPU, under each policy. One that does not fit the
chip is counted as skipped; a report of any other rule is a false alarm, and a failure. So is too large a share of skipped
ones. Needs the host's C++ compiler, and nothing of CUDA.

  random_schedules.py --schedc build/release/schedc [--seeds A..B | --count N] [-j 2] [--on cuda|nvrtc] [--keep FOLDER]
                      [--until N] [--verbose]

--on cuda: on a Hopper GPU, and neither on the interpreter nor on the model. --on nvrtc: not run, but built to machine code, of
which the PTX must be that of the plan. --seeds: from A to B - 1 (default: 0..300). --keep: writes every schedule there, and leaves it. --until: ends after
so many failures.
"""
import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import random_kernels  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIMIT = 60  # seconds a run may take
REJECTED = 0.25  # share of the schedules that `check` may reject, for these reasons
LIMITS = {"R8.live", "R8.regs", "R8.smem", "R8.threads", "R9.copy", "G.emit"}
POLICIES = ["early", "late", "random", "laggard"]


def run(command, cache):
    """Exit code (None: it did not end) and what was written."""
    try:
        done = subprocess.run(command, cwd=ROOT, env=dict(os.environ, SCHEDC_CACHE=cache), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=LIMIT, encoding="utf-8", errors="replace")
    except subprocess.TimeoutExpired:
        return None, f"did not end within {LIMIT} s"
    return done.returncode, done.stdout


def runs_on_gpu():
    yield ["test", "--on", "cuda", "--quick", "--inputs", "normal", "--lenient"]


def builds(cubin):
    yield ["build", "-o", cubin, "--lenient", "--no-cache"]


def runs(seed, extra):
    """After the check: the interpreter, then the model, each policy at lengths of its own; one of them with few multiprocessors."""
    yield ["test", "--on", "cpu", "--quick", "--inputs", "normal", "--threads", "1", "--seed", str(seed)]
    for number, (policy, dims) in enumerate(zip(POLICIES, [{}] + extra)):
        words = [word for name, value in dims.items() for word in ("--set", f"{name}={value}")]
        sms = (1, 2, 2, 3)[(seed + number) % 4]
        yield ["run", "--on", "model", "--policy", policy, "--seed", str(seed), "--sms", str(sms)] + words


class Judge:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder

    def verdict(self, seed):
        """("ok", ""), ("rejected", code) or ("FAIL", what to say)."""
        path = os.path.join(self.folder, f"{seed}.sched")
        cache = os.path.join(self.folder, f"{seed}.cache")
        text, extra = random_kernels.draw(seed)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        check = [self.args.schedc, "check", "--emit=cuda", "-o", os.devnull, path]
        code, said = run(check, cache)
        rules = re.findall(r"error\[([A-Z]\w*\.\w+)\]", said)
        if code == 1 and rules and set(rules) <= LIMITS:
            return "rejected", rules[0]
        cubin = os.path.join(self.folder, f"{seed}.cubin")
        on = {"cuda": runs_on_gpu(), "nvrtc": builds(cubin)}
        commands = [] if code else on.get(self.args.on) or runs(seed, extra)
        failed = check if code else None
        for words in commands:
            command = [self.args.schedc, words[0], path, *words[1:]]
            code, said = run(command, cache)
            if code:
                failed = command
                break
        subprocess.run(["rm", "-rf", cache, cubin], check=False)
        return ("FAIL", f"again: {' '.join(failed)}\nexit code {code}\n{said}\n{text}") if failed else ("ok", "")


def seeds_of(args):
    if args.count is not None:
        return range(args.count)
    first, last = re.fullmatch(r"(\d+)\.\.(\d+)", args.seeds).groups()
    return range(int(first), int(last))


def judge_all(args, folder):
    counts, rejected = collections.Counter(), collections.Counter()
    judge, begin = Judge(args, folder), time.time()
    with ThreadPoolExecutor(args.j) as pool:
        for seed, (verdict, said) in zip(seeds_of(args), pool.map(judge.verdict, seeds_of(args))):
            if counts["FAIL"] == args.until:
                pool.shutdown(cancel_futures=True)
                break
            counts[verdict] += 1
            rejected[said] += verdict == "rejected"
            if verdict == "FAIL" or args.verbose:
                print(f"{verdict} seed {seed} {said}", flush=True)
    for rule, times in sorted(rejected.items()):
        if times:
            print(f"rejected by {rule}: {times}")
    print(f"took {time.time() - begin:.0f} s")
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "release", "schedc"))
    parser.add_argument("--seeds", default="0..300")
    parser.add_argument("--count", type=int)
    parser.add_argument("-j", type=int, default=2)
    parser.add_argument("--on", choices=["cuda", "nvrtc"])
    parser.add_argument("--keep", help="a folder for the schedules; without it those that fail are printed")
    parser.add_argument("--until", type=int)
    parser.add_argument("--verbose", action="store_true", help="one line a seed")
    args = parser.parse_args()
    args.schedc = os.path.abspath(args.schedc)
    if args.keep:
        os.makedirs(args.keep, exist_ok=True)
        counts = judge_all(args, os.path.abspath(args.keep))
    else:
        with tempfile.TemporaryDirectory() as folder:
            counts = judge_all(args, folder)
    passed, failed, skipped = counts["ok"], counts["FAIL"], counts["rejected"]
    if skipped > REJECTED * (passed + failed + skipped):
        print("FAIL too many are rejected")
        failed += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
