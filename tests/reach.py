#!/usr/bin/env python3
"""The language reaches: every kernel of tests/corpus is accepted, and its cases pass.

  reach.py --schedc build/schedc [--full] [FILE …]
"""
import argparse
import glob
import os
import re
import subprocess
import sys


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, encoding="utf-8")
    return done.returncode, done.stdout


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", default=os.path.join(root, "build", "schedc"))
    parser.add_argument("--full", action="store_true", help="all inputs, more seeds")
    parser.add_argument("files", nargs="*", default=sorted(glob.glob(os.path.join(root, "tests", "corpus", "*.sched"))))
    args = parser.parse_args()

    total = [0, 0, 0]
    for path in args.files:
        status, out = run(args.schedc, "check", path)
        if status == 0:
            status, out = run(args.schedc, "test", "--full" if args.full else "--quick", path)
        counts = re.search(r"(\d+) passed, (\d+) failed, (\d+) skipped", out)
        counts = [int(n) for n in counts.groups()] if counts else [0, 1, 0]
        if status and not counts[1]:
            counts[1] = 1
        total = [a + b for a, b in zip(total, counts)]
        print(out.rstrip() if status else f"{os.path.basename(path)}: {counts[0]}")
    print("%d passed, %d failed, %d skipped" % tuple(total))
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
