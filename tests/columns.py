#!/usr/bin/env python3
"""A row of expr.def is all that an operation needs but a cost, and it needs all of its row: in a copy of the sources, the
table with a row more compiles once runtime/tune/cost.def has one for it, and with any column of a row left out, or empty,
it does not. And what a row has for C is in CUDA C, in the table of what emitted kernels call, or in the words of the model
(model/kernel.hpp).

  columns.py [--cc cc]
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE, MODEL, COST = "compiler/ir/expr.def", "model/kernel.hpp", "runtime/tune/cost.def"
KINDS = ("NUMBER", "REALS", "INTEGERS", "COMPARES", "TRUTHS")
MORE = 'REALS(PROBE, "probe", CALL, 1, sin(a), sinf(a), DAMPED, "sinf")\n'
COST_OF_MORE = "#ifdef EXPR_COST\nEXPR_COST(PROBE, 0, 0, 1)\n#endif\n"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def columns(row):
    """The arguments of a macro's call."""
    found, depth = [""], 0
    for c in row[row.index("(") + 1:row.rindex(")")]:
        depth += {"(": 1, ")": -1}.get(c, 0)
        if c == "," and not depth:
            found.append("")
        else:
            found[-1] += c
    return found


def last_rows(table):
    """(kind, row) of each kind's last row."""
    for kind in KINDS:
        yield kind, re.findall(rf"^{kind}\(.*\n", table, re.M)[-1]


def damaged(row):
    """(what is wrong with it, row), of each column but the ID, which cannot be empty for long."""
    kind, values = row[:row.index("(")], columns(row)
    for i in range(1, len(values)):
        yield f"without column {i}", f"{kind}({','.join(values[:i] + values[i + 1:])})\n"
        yield f"column {i} empty", f"{kind}({','.join(values[:i] + [''] + values[i + 1:])})\n"


class Copy:
    """A copy of the library's sources, with a table of its own."""

    def __init__(self, cc, folder):
        self.cc, self.folder = cc, folder
        for part in ("include", "base", "lang", "compiler", "runtime", "model"):
            shutil.copytree(os.path.join(ROOT, part), os.path.join(folder, part))
        for name in ("launcher_text.inc", "nearest_text.inc"):  # which the build makes for header.c, which reads the table, too
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write("0")
        paths = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
        readers = [path for path in paths if re.search(r'^#include "[\w/]*(expr\.def|strip_reals\.inc)"', read(path), re.M)]
        self.readers = sorted(path for path in readers if path.endswith(".c"))

    def compiles(self, table, cost=""):
        """cost: what cost.def has more."""
        for path, text in ((TABLE, table), (COST, cost + read(os.path.join(ROOT, COST)))):
            with open(os.path.join(self.folder, path), "w", encoding="utf-8") as file:
                file.write(text)
        command = [self.cc, "-std=gnu11", "-w", "-fsyntax-only", f"-I{self.folder}", f"-I{self.folder}/include"]
        return all(subprocess.run([*command, path], stderr=subprocess.DEVNULL).returncode == 0 for path in self.readers)


def checks(copy):
    """(name, what is wrong) of each check."""
    table, model = read(os.path.join(ROOT, TABLE)), read(os.path.join(ROOT, MODEL))
    yield "there are readers", "" if len(copy.readers) >= 3 else f"only {len(copy.readers)}"
    yield "the table compiles", "" if copy.compiles(table) else "it does not"
    last = dict(last_rows(table))["REALS"]
    more = table.replace(last, last + MORE)
    yield "a row more compiles", "" if copy.compiles(more, COST_OF_MORE) else "it does not"
    yield "a row more without a cost", "it compiles" if copy.compiles(more) else ""
    for kind, row in last_rows(table):
        for what, wrong in damaged(row):
            yield f"{kind} {what}", "it compiles" if copy.compiles(table.replace(row, wrong)) else ""
    for kind, row in re.findall(r"^(\w+)(\(.*\))", table, re.M):
        for name in re.findall(r'"([a-z]\w*)"', ",".join(columns(row)[3:])) if kind in KINDS else []:
            there = name.startswith("sc_") or re.search(rf"^DEV \w+ {name}\(", model, re.M)
            yield f"{name} on the model", "" if there else f"it is not in {MODEL}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cc", default="cc")
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, wrong in checks(Copy(parser.parse_args().cc, folder)):
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print(f"FAIL {name}: {wrong}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
