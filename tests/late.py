#!/usr/bin/env python3
"""Mistakes that show late (tests/late): is each of these schedules really wrong, and from where on?

The first line of a file says how: `// BAD: deadlock; run: OPTIONS; right: OPTIONS`. With the
options after `run:` the interpreter fails for that reason, and with those after `right:` it passes:
so the mistake is one that few rounds do not show. Nor may the check prove of such a file what is
not so; where it does today, the file is named in late/proved_wrongly.txt. How many it refuses is
told.

  late.py --schedc build/schedc [NAME …]
"""
import argparse
import os
import re
import shlex
import subprocess
import sys

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "late")
REPORTS = {"deadlock": {"X.deadlock", "X.left"}, "race": {"X.race"}, "stale phase": {"X.phase"},
           "no such key": {"X.bounds"}, "outside": {"X.bounds"},
           "division": {"X.value"},
           "mixed slices": {"-"}}  # -: other numbers than specified
# What `check --emit=verify` says of it. Not all of these can be proved where there is the mistake.
CLAIMS = {"deadlock": ["every wait ends", "equally often"],
          "no such key": ["every wait ends"],
          "race": ["two accesses of a stage", "two accesses of a tensor"],
          "stale phase": ["mistakes or misses a phase"],
          "outside": ["shared memory, barriers or registers overlap"],
          "division": ["no integer is divided by 0"],
          "mixed slices": ["two accesses of a stage"]}


def run(schedc, command, path, *options):
    """(the first error's code, '-' if it fails without one, None if it does not; what it says)."""
    done = subprocess.run([schedc, command, path, *options], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60, encoding="utf-8", errors="replace")
    code = re.search(r"error\[([\w.-]+)\]", done.stdout)
    return code.group(1) if code else "-" if done.returncode else None, done.stdout


def read_claim(path):
    """What a file's first line says: (kind of mistake, options with which it shows, those with
    which it does not, or None); None: nothing."""
    with open(path, encoding="utf-8") as file:
        claim = re.match(r"// BAD: ([\w ]+); run: ([^;]*?)(?:; right: ([^;]*))?$", file.readline())
    return claim and (claim.group(1), shlex.split(claim.group(2)),
                      None if claim.group(3) is None else shlex.split(claim.group(3)))


def is_proved(schedc, path, kind, options):
    """Does the check prove of a file, with its params, that it has no mistake of the kind?"""
    params = [word for flag, value in zip(options, options[1:]) if flag == "-p"
              for word in (flag, value)]
    code, text = run(schedc, "check", path, "--emit=verify", *params)
    said = [[line for line in text.splitlines() if claim in line] for claim in CLAIMS[kind]]
    if not code and not all(said):
        sys.exit(f"--emit=verify does not speak of a {kind} as CLAIMS expects:\n{text}")
    return not code and all(": proved" in lines[0] for lines in said)


def read_wrong():
    with open(os.path.join(HERE, "proved_wrongly.txt"), encoding="utf-8") as file:
        return {line.partition("#")[0].strip() for line in file} - {""}


def disproved(schedc, path):
    """What of a file's claim is not so, and what the check proves of it that is not so."""
    kind, options, right = read_claim(path)
    wrong = os.path.basename(path) in read_wrong()
    if is_proved(schedc, path, kind, options) != wrong:
        yield f"{path}: the check proves that there is no {kind}" if not wrong else (
            f"{path}: no longer proved, to be struck from proved_wrongly.txt")
    code, text = run(schedc, "run", path, "--on", "cpu", *options)
    if code not in REPORTS[kind]:
        yield f"{path}: {code or 'no error'} instead of a {kind}\n{text}"
    if right is not None:
        code, text = run(schedc, "run", path, "--on", "cpu", *right)
        if code:
            yield f"{path}: {code} where it is to be right\n{text}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", required=True)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    schedc, passed, failed, refused = os.path.abspath(args.schedc), 0, 0, 0
    for name in args.names or sorted(f[:-6] for f in os.listdir(HERE) if f.endswith(".sched")):
        path = os.path.join(HERE, name + ".sched")
        assert read_claim(path), f"{name}: the first line does not say what is wrong"
        code, _ = run(schedc, "check", path)
        refused += code is not None
        found = list(disproved(schedc, path))
        passed, failed = passed + (not found), failed + bool(found)
        print("\n".join(found), end="\n" if found else "")
    print(f"{passed + failed} late mistakes: {refused} refused by the check")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
