#!/usr/bin/env python3
"""Races that the check finds (R10.race): is each really one, and is what it accepts none?

Each tests/bad/R10.race*.sched, and each race of tests/late but for UNSHOWN, is refused with a command that shows
it: run, the command must end in a race between the two lines of the report. The same schedules,
mended, and all of the project's own must be proved free of races.

  verify_races.py --schedc build/release/schedc [--own]     (own: the project's schedules, too)
"""
import argparse
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CLAIMS = ("no two accesses of a stage by different instances race: proved",
          "no two accesses of a tensor race: proved")
# By file: what mends it, as replacements in its text.
MENDS = {
    "R10.race": [("c <- G[x*64..];  wait sig;  release sig", "wait sig;  c <- G[x*64..];  release sig")],
    "R10.race-2": [("x*96 + 32*w", "x*128 + 64*w"), ("cdiv(M, 96)", "cdiv(M, 128)")],
    "R10.race-3": [("O[x*64 + i, j] = t", "O[x*64 + i, j] += t"), ("out ", "inout ")],
    "R10.race-4": [("32*w", "64*w"), ("[96, 64]", "[128, 64]"), ("x*96", "x*128"), ("cdiv(M, 96)", "cdiv(M, 128)")],
    "R10.race-5": [("ring r : f32[64, 64]", "ring r : f32[64, 64], done : f32[64]"),
                   ("r[i,j] = 2 * r[i,j];", "r[i,j] = 2 * r[i,j];  acquire done;  commit done;"),
                   ("    O[x*64..", "    wait done;  release done\n    O[x*64..")],
    "R10.race-6": [("    s[d] = G[d] + X[x,d]\n    acquire order\n",
                    "    acquire order\n    s[d] = G[d] + X[x,d]\n")],
    "R10.race-7": [("= t[i,j]", "= t[i,j] if i < cu[b+1] - cu[b]"), ("cu : i32[B+1]", "cu : i32[B+1] rising")],
    "R10.race-8": [("wait Y read", "wait Y")],
    "R10.race-9": [("* 3", "* 2")],
    "R10.race-10": [("x*32", "x*64")],
    "R10.race-12": [("P[b, 0, i, j] = t", "P[b, s, i, j] = t")],
    "R10.race-13": [("    release order\n    part[x,j] = s[j] + b[j]\n", "    part[x,j] = s[j] + b[j]\n    release order\n")],
    "R10.race-14": [("turn order : y", "turn order : x")],
}
OPEN = {"word_of_two", "told_by_the_other_key"}  # right, and not proved
# Races that are left open. The search for one has the first instance of a role only, knows nothing of data nor of
# single threads, takes lists from cases, asks of turns over CTAs only along which axes they go and whether one is taken
# before and passed on behind, looks at no surplus tiles, and tries dimensions and scalars one at a time.
UNSHOWN = {"rows_by_tile_and_instance", "instances_told_by_data", "beyond_the_end_of_a_list",
           "turn_passed_on_before_the_read", "rounds_by_a_quotient",
           "range_without_numbers", "stored_before_one_arrival", "rows_of_a_surplus_tile",
           "elements_not_asked_for", "changed_before_a_lone_arrival", "rows_by_two_lists",
           "copied_out_twice_in_its_turn", "overwritten_in_its_turn", "zeroed_before_the_share_lands",
           "ragged_cta_does_not_share", "pair_fills_by_its_words", "offset_beyond_the_list",
           "rows_by_a_list_that_falls", "seen_behind_its_turn"}


class Wrong(Exception):
    """What a file is held to is not so."""


def call(schedc, *command):
    done = subprocess.run([schedc, *command], cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120, encoding="utf-8", errors="replace")
    return done.returncode, done.stdout


def is_shown(schedc, path):
    """Refused, with a command that ends in a race between the same two lines?"""
    code, text = call(schedc, "check", path)
    if code != 1 or "error[R10.race]" not in text:
        raise Wrong(f"{path}: no R10.race\n{text}")
    report = text[text.index("error[R10.race]"):].split("\n      = help")[0]
    lines = [int(n) for n in re.findall(r"^ +(\d+) \| ", report, re.M)]
    command = re.search(r"to see it: schedc (.*)$", report, re.M).group(1)
    code, text = call(schedc, *shlex.split(command))
    if code != 1 or "error[X.race]" not in text:
        raise Wrong(f"{path}: no race with '{command}'\n{text}")
    shown = [int(n) for n in re.findall(r"^ +(\d+) \| ", text, re.M)]
    if not set(shown) <= set(lines):
        raise Wrong(f"{path}: the report has the lines {lines}, the run {shown}\n{text}")


def is_free(schedc, path):
    """Are all of its kernels proved to have no race?"""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        kernels = re.findall(r"^kernel (\w+)", file.read(), re.M)
    for kernel in kernels:
        _, text = call(schedc, "check", "--emit=verify", path, kernel)
        if not all(claim in text for claim in CLAIMS):
            raise Wrong(f"{path}: {kernel} is not proved to have no race\n{text}")


def is_mended(schedc, name, folder):
    with open(os.path.join(ROOT, "tests/bad", name + ".sched"), encoding="utf-8") as file:
        text = file.read()
    for old, new in MENDS[name]:
        if old not in text:
            raise Wrong(f"{name}: '{old}' is not in it")
        text = text.replace(old, new)
    path = os.path.join(folder, name + ".sched")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    is_free(schedc, path)


def races():
    """The races of tests/bad and tests/late."""
    yield from sorted(glob.glob("tests/bad/R10.race*.sched", root_dir=ROOT))
    for path in sorted(glob.glob("tests/late/*.sched", root_dir=ROOT)):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            race = file.readline().startswith("// BAD: race;")
        if race and os.path.basename(path)[:-6] not in UNSHOWN:
            yield path


def own():
    """The project's schedules, but for those that the check refuses for another reason."""
    with open(os.path.join(ROOT, "tests/unusual/refused.txt"), encoding="utf-8") as file:
        refused = {line.split()[0] for line in file if line.strip() and line[0] != "#"}
    for folder in ("schedules", "tests/corpus", "tests/unusual"):
        for path in sorted(glob.glob(folder + "/*.sched", root_dir=ROOT)):
            if os.path.basename(path)[:-6] not in refused | OPEN:
                yield path


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", required=True)
    parser.add_argument("--own", action="store_true", help="the project's schedules, too")
    args = parser.parse_args()
    schedc, passed, failed = os.path.abspath(args.schedc), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        tasks = [(is_shown, path) for path in races()]
        tasks += [(is_mended, name, folder) for name in MENDS]
        tasks += [(is_free, path) for path in own()] if args.own else []
        for check, *what in tasks:
            try:
                check(schedc, *what)
                passed += 1
            except Wrong as wrong:
                failed += 1
                print("FAIL", wrong)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
