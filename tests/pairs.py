#!/usr/bin/env python3
"""Real bugs, each as a pair (tests/pairs): NN-name.bad.sched has it, NN-name.good.sched does not.

pairs/expected.txt has a line `file verdict code` for each file:
  ok        accepted by `schedc check`, and right: `schedc test --quick` passes
  rejected  by `schedc check`, with this code
  ok-today  a bug that the check does not find
What a bad file's first line says of a run, as in tests/late, is so, and the check proves nothing
else.

  pairs.py --schedc build/schedc [FILE …]
"""
import argparse
import os
import sys

import late

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pairs")


def read_expected():
    with open(os.path.join(HERE, "expected.txt"), encoding="utf-8") as file:
        return {name: (verdict, code) for name, verdict, code in (line.split() for line in file)}


def failures(schedc, name, verdict, code):
    path = os.path.join(HERE, name)
    got, text = late.run(schedc, "check", path)
    if got != (code if verdict == "rejected" else None):
        yield f"{name}: {got or 'accepted'}, not {verdict} {code}\n{text}"
    elif verdict == "ok":
        got, text = late.run(schedc, "test", path, "--quick")
        if got:
            yield f"{name}: fails its test\n{text}"
    elif late.read_claim(path):
        yield from late.disproved(schedc, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", required=True)
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    schedc, expected, passed = os.path.abspath(args.schedc), read_expected(), 0
    there = {file for file in os.listdir(HERE) if file.endswith(".sched")}
    unlisted = sorted(there ^ set(expected))
    for file in unlisted:
        print(f"{file}: {'is not in expected.txt' if file in there else 'is not there'}")
    files = args.files or sorted(there & set(expected))
    for file in files:
        found = list(failures(schedc, file, *expected[file]))
        passed += not found
        print("\n".join(found), end="\n" if found else "")
    bad = [verdict for file, (verdict, _) in expected.items() if file.endswith(".bad.sched")]
    print(f"{len(bad)} bugs: {bad.count('rejected')} rejected by the check")
    failed = len(files) - passed + len(unlisted)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
