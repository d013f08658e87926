#!/usr/bin/env python3
"""A rejection of `check` that names a command: run, does it fail in the same way? Of every schedule in tests/bad, faults, late
and pairs that is rejected by R5.agree, R6.deadlock, R6.dealt or R6.key with a command to see it, and of random programs (experiment.md).

  witnesses.py --schedc build/release/schedc [--experiment build/release/tests/experiment] [--seeds N] [FILE …]
"""
import argparse
import collections
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ("bad", "faults", "late", "pairs")
FAULTS = {"X.deadlock", "X.left"}  # what the interpreter says of R5.agree and R6.deadlock
RACE = {"X.race"}                  # … of R10.race
PHASE = {"X.phase"}                # … of R6.dealt
KEY = {"X.bounds"}                 # … and of R6.key
RULES = {"R5.agree": FAULTS, "R6.deadlock": FAULTS, "R6.dealt": PHASE, "R6.key": KEY}
counts = collections.Counter()


def run(command):
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                          encoding="utf-8", errors="replace")
    return done.returncode, done.stdout


def codes(text):
    return set(re.findall(r"error\[([A-Z]\w*\.\w+)\]", text))


def replay(schedc, path, said, faults=frozenset(FAULTS)):
    """The command of a report, run: (does it end in one of the faults?, the command, exit code and output); None: there is
    no command."""
    command = re.search(r"to see it: schedc (.*)$", said, re.M)
    if not command:
        return None
    words = [path if word.endswith(".sched") else word for word in shlex.split(command.group(1))]
    code, seen = run([schedc, *words])
    return code == 1 and bool(codes(seen) & faults), " ".join(words), f"exit code {code}\n{seen}"


def judge(schedc, path):
    _, said = run([schedc, "check", path])
    said_of = codes(said) & set(RULES)
    if not said_of:
        return
    shown = replay(schedc, path, said, set.union(*(RULES[code] for code in said_of)))
    if not shown:
        counts["none"] += 1
        print(f"no command: {path}")
        return
    good, command, seen = shown
    counts["good" if good else "bad"] += 1
    if not good:
        print(f"FAIL {path}: {command}\n{said}{seen}")


def random_programs(experiment, seeds, folder):
    """Without tensors or stages that threads write: a run might end in a race before it comes to what was said."""
    for seed in range(seeds):
        path = os.path.join(folder, f"{seed}.sched")
        _, text = run([experiment, "-w", str(seed)])
        if "inout" in text or re.search(r"^ *r\d+\[", text, re.M):
            continue
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        yield path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "release", "schedc"))
    parser.add_argument("--experiment", default=os.path.join(ROOT, "build", "release", "tests", "experiment"))
    parser.add_argument("--seeds", type=int, default=800)
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    schedc, experiment = os.path.abspath(args.schedc), os.path.abspath(args.experiment)
    files = args.files or [p for f in FOLDERS for p in sorted(glob.glob(os.path.join(ROOT, "tests", f, "*.sched")))]
    for path in files:
        judge(schedc, os.path.abspath(path))
    own = dict(counts)
    if not args.files:
        with tempfile.TemporaryDirectory() as folder:
            for path in random_programs(experiment, args.seeds, folder):
                judge(schedc, path)
    print(f"{own.get('good', 0)} schedules of tests/ and {counts['good'] - own.get('good', 0)} random ones fail as was said")
    print(f"{counts['good']} passed, {counts['bad']} failed, {counts['none']} skipped")
    return 1 if counts["bad"] or not counts["good"] else 0


if __name__ == "__main__":
    sys.exit(main())
