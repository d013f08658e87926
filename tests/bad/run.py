#!/usr/bin/env python3
"""Golden reports: every NAME.sched beside NAME.err, which is the exact output of `schedc check NAME.sched`.

A pair is named after its code (R3.release.sched; several: R3.release-2.sched). Every code of `schedc explain`
has a pair, or, where no file can provoke it, is named in a unit test (….internal: a defect of schedc). A first line `// -p NAME=VALUE …` adds
options.

  run.py --schedc build/schedc [--update] [NAME …]
"""
import argparse
import difflib
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def check(schedc, name):
    with open(os.path.join(HERE, name + ".sched"), encoding="utf-8", errors="replace") as file:
        options = re.match(r"// (-p .*)", file.readline())
    command = [schedc, "check", name + ".sched"] + (options.group(1).split() if options else [])
    done = subprocess.run(command, cwd=HERE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60)
    return done.returncode, done.stderr.decode("utf-8", "replace")


def failures(schedc, name, update):
    code, got = check(schedc, name)
    path = os.path.join(HERE, name + ".err")
    if update:
        with open(path, "w", encoding="utf-8") as file:
            file.write(got)
    with open(path, encoding="utf-8") as file:
        want = file.read()
    rule = re.sub(r"-\d+$", "", name)
    if code != (1 if "error[" in want else 0):
        yield f"{name}: exit code {code}"
    if got != want:
        yield "".join(difflib.unified_diff(want.splitlines(True), got.splitlines(True), name + ".err", "now"))
    if f"[{rule}]" not in got:
        yield f"{name}: does not report {rule}"


def listed(schedc, *rule):
    return subprocess.run([schedc, "explain", *rule], stdout=subprocess.PIPE, encoding="utf-8").stdout.splitlines()


def unlisted(schedc):
    """Rules of which `schedc explain RULE` does not list the codes."""
    everything = listed(schedc)
    for rule in sorted({line.split(".")[0] for line in everything}):
        if listed(schedc, rule) != [line for line in everything if line.startswith(rule + ".")]:
            yield rule


def untested(schedc, pairs):
    """Codes without a pair and without mention in tests/unit."""
    have = {re.sub(r"-\d+$", "", name) for name in pairs}
    unit = os.path.join(HERE, "..", "unit")
    tests = "".join(open(os.path.join(unit, f), encoding="utf-8").read() for f in os.listdir(unit) if f.endswith(".c"))
    for code in (line.split()[0] for line in listed(schedc)):
        enumerator = "D_" + code.replace(".", "_").upper()
        if not code.endswith(".internal") and code not in have and code not in tests and not re.search(enumerator + r"\b", tests, re.I):
            yield code


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", required=True)
    parser.add_argument("--update", action="store_true", help="write the .err files anew: read the difference!")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    schedc = os.path.abspath(args.schedc)
    everything = sorted(f[:-6] for f in os.listdir(HERE) if f.endswith(".sched"))
    names, passed, failed = args.names or everything, 0, 0
    for name in names:
        found = list(failures(schedc, name, args.update))
        passed, failed = passed + (not found), failed + bool(found)
        print("\n".join(found), end="\n" if found else "")
    if not args.names:
        for code in untested(schedc, everything):
            print(f"{code}: has neither a pair in tests/bad nor a unit test")
            failed += 1
        for rule in unlisted(schedc):
            print(f"{rule}: is not listed")
            failed += 1
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
