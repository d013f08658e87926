#!/usr/bin/env python3
"""Faults that a run finds: `schedc test --quick` must not accept any NAME.sched here.

NAME.err begins with the errors of `schedc check`, if it finds the fault, too. Then comes the first failure of the test,
word for word, and what it says it has left out. After `again:` each failure names
a command: run, it must fail in the same way.

  run.py --schedc build/schedc [--update] [NAME …]
"""
import argparse
import difflib
import os
import re
import shlex
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

# Runs that are to pass of what is wrong in every run: those of no rows, which have nothing that could be wrong.
PASSED = {"wrong_values": 3}


def run(*command):
    done = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def blocks(text):
    """The failures of a test, and the lines after its summary."""
    parts = re.split(r"^(?=FAIL )", text, flags=re.M)[1:]
    last, summary, rest = re.split(r"^(\S+\.sched: \d+ passed.*\n)", parts[-1] if parts else text, maxsplit=1, flags=re.M)
    return parts[:-1] + [last] if parts else [], re.sub(r"^  skipped.*\n", "", rest, flags=re.M)


def same(failure, text):
    """Does the text of a run tell of the same fault, or of the same error?"""
    report = re.search(r"^\S+: error\[.*$", failure, re.M)
    error = re.match(r"FAIL \w+: max error (\S+)", failure)
    return bool(report and report.group(0) in text) or bool(error and f" {error.group(1)} (" in text and "FAIL" in text)


def failures(schedc, name, update):
    code, checked = run(schedc, "check", name + ".sched")
    code, text = run(schedc, "test", "--quick", name + ".sched")
    found, left = blocks(text)
    passed = re.search(r"^\S+\.sched: (\d+) passed", text, re.M)
    if name in PASSED and (not passed or int(passed.group(1)) != PASSED[name]):
        yield f"{name}: {PASSED[name]} runs are to pass\n{text}"
    if code != 1 or not found:
        yield f"{name}: exit code {code}, {len(found)} failures\n{text}"
        return
    path, got = os.path.join(HERE, name + ".err"), "".join(re.findall(r"^.*: error.*\n", checked, re.M)) + found[0] + left
    if update:
        with open(path, "w", encoding="utf-8") as file:
            file.write(got)
    with open(path, encoding="utf-8") as file:
        want = file.read()
    if got != want:
        yield "".join(difflib.unified_diff(want.splitlines(True), got.splitlines(True), name + ".err", "now"))
    seeds = re.findall(r"^  again: .*--policy random .*--seed (\d+)", "".join(found), re.M)
    if len(set(seeds)) != len(seeds):
        yield f"{name}: the same seed for several inputs"
    for failure in found:
        command = shlex.split(re.search(r"^  again: (.*)$", failure, re.M).group(1))
        code, text = run(schedc, *command[1:])
        if code != 1 or not same(failure, text):
            yield f"{name}: is not repeated:\n{failure}\n{text}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", required=True)
    parser.add_argument("--update", action="store_true", help="write the .err files anew: read the difference!")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    passed = failed = 0
    for name in args.names or sorted(f[:-6] for f in os.listdir(HERE) if f.endswith(".sched")):
        found = list(failures(os.path.abspath(args.schedc), name, args.update))
        passed, failed = passed + (not found), failed + bool(found)
        print("\n".join(found), end="\n" if found else "")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
