#!/usr/bin/env python3
"""All that touches the machine is in the table: of each emitted text PTX, intrinsics, atomics and volatile accesses stand
in the MACHINE functions of compiler/emit/prims.def, as the table has them, in its HEAD, and in the functions of wgmma; and
nowhere else. And the model of a GPU has a second body for each of these functions (model/kernel.hpp), so that what a test
on the model runs is all of the text but them.

  machine.py [--schedc build/release/schedc]

The texts are those of schedules/ and tests/corpus/, each kernel and sequence with its defaults, with and without
--debug-waits.
"""
import argparse
import glob
import os
import re
import sys

import configs

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE, MODEL = "compiler/emit/prims.def", "model/kernel.hpp"  # the table includes its parts
MACHINE = re.compile(r"\basm\b|\bvolatile\b|\b__\w+|\batomic\w+|\b(?:clock|clock64|printf|trap)\s*\(")
WGMMA = re.compile(r"template <int [^>]*>\nDEV void sc_wgmma_\w+\(.*?\n}\n", re.S)
MACRO = {"late"}  # a part of asm statements, not a function


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def read_table():
    return re.sub(r'^#include "([^"]+)"$', lambda part: read(part[1]), read(TABLE), flags=re.M)


def rows(table):
    """(kind, name, text) of each row."""
    found = re.findall(r"^(HEAD|PRIM|MACHINE)\(\s*(?:(\w+),)?\s*((?:\s*\"(?:[^\"\\]|\\.)*\")+)\)", table, re.M)
    pieces = re.compile(r'"((?:[^"\\]|\\.)*)"')
    return [(kind, name, re.sub(r"\\(.)", lambda c: "\n" if c[1] == "n" else c[1], "".join(pieces.findall(text))))
            for kind, name, text in found]


def words_of_cuda(model):
    """Those that stand for nothing, the model's `#define __device__` and so on, or for the same in the model."""
    return {*re.findall(r"^#define (__\w+)", model, re.M), "__attribute__"}


def stray(text, table, allowed):
    """The words that should not be in what is left of a text without the functions that have them."""
    for kind, _, body in table:
        if kind != "PRIM":
            text = text.replace(body, "")
    text = re.sub(r"//[^\n]*", "", WGMMA.sub("", text))
    return sorted({word for word in MACHINE.findall(text) if word not in allowed})


def texts(schedc):
    """(name, text) of each."""
    for path in sorted(glob.glob("schedules/*.sched") + glob.glob("tests/corpus/*.sched")):
        for kernel, _, _ in configs.units(path):
            for debug in ([], ["--debug-waits"]):
                done = configs.run(schedc, "build", path, kernel, *debug, "--to", "cu", "-o", "-")
                if done.returncode not in (0, 1):  # 1: this one is refused
                    raise SystemExit(f"schedc build {path} {kernel} {debug}: exit code {done.returncode}\n{done.stderr}")
                if done.returncode == 0:
                    yield " ".join([path, kernel, *debug]), done.stdout


def checks(schedc):
    """(name, what is wrong) of each check."""
    whole = read_table()
    table, model = rows(whole), read(MODEL)
    allowed, emitted = words_of_cuda(model), 0
    count = len(re.findall(r"^(?:HEAD|PRIM|MACHINE)\(", whole, re.M))
    yield "the table is read", "" if len(table) == count > 1 else f"{len(table)} rows of {count}"
    for kind, name, body in table:
        if kind == "PRIM":
            yield f"{name} is plain C++", " ".join(stray(body, [], allowed))
        elif kind == "MACHINE" and name not in MACRO:
            there = re.search(rf"^(?:template <[^>]*> )?DEV [\w ]+ sc_{name}\(", model, re.M)
            yield f"{name} has a second body", "" if there else f"it is not in {MODEL}"
    for name, text in texts(schedc):
        emitted += 1
        found = stray(text, table, allowed)
        yield name, found and f"outside the functions of {TABLE}: {' '.join(found)}"
    yield "there are texts", "" if emitted > 50 else f"only {emitted}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "release", "schedc"))
    args = parser.parse_args()
    schedc = os.path.abspath(args.schedc)
    os.chdir(ROOT)
    passed = failed = 0
    for name, wrong in checks(schedc):
        passed, failed = passed + (not wrong), failed + bool(wrong)
        if wrong:
            print(f"FAIL {name}: {wrong}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
