#!/usr/bin/env python3
"""Does the map of compiler/README.md say what the tree is?

  rooms.py [--build build/release]

In: the tables of the map, from top to bottom, and the objects of a build. Held: every source file of base, lang, compiler and
runtime stands on the map, once, and nothing else does; no file includes a header from a room above its own, or calls a
function there; inside a room callers stand above what they call, but in the circles that are listed here.
"""
import argparse
import collections
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MAPPED = ("base", "lang", "compiler", "runtime")
SOURCE = (".c", ".h", ".def", ".inc", ".re", ".y")
# What lies beside the map may include of it these files and rooms, and what of it the map may include.
BESIDE = {
    "cli": ("base", "runtime/run.h"),
    "model": ("runtime/run.h", "runtime/data/clones.h", "compiler/emit/prims.def"),
    "runtime/cuda": ("model/fault.h",),
}
# Files of a room that call each other in circles. None may be added; one that is gone must be struck.
CIRCLES = [
    "compiler/emit/expr.c compiler/emit/frame.c compiler/emit/grid.c compiler/emit/inside.c compiler/emit/map.c "
    "compiler/emit/mma.c compiler/emit/ring.c compiler/emit/scope.c compiler/emit/tie.c compiler/emit/tile.c "
    "compiler/emit/wait.c compiler/emit/write.c",
    "compiler/flow/derive.c compiler/flow/report.c compiler/flow/ring.c compiler/flow/step.c compiler/flow/tensor.c "
    "compiler/flow/walk.c",
    "compiler/ir/wellformed.c compiler/ir/wellformed_code.c",
    "compiler/layout/layout.c compiler/layout/move.c",
    "compiler/lower/bind.c compiler/lower/seq.c",
    "compiler/lower/copy.c compiler/lower/declare.c compiler/lower/def.c compiler/lower/expr.c compiler/lower/map.c "
    "compiler/lower/product.c compiler/lower/round.c compiler/lower/scope.c compiler/lower/stmt.c compiler/lower/view.c",
    "compiler/target/copy.c compiler/target/map.c compiler/target/mma.c compiler/target/target.c",
    "lang/drive.c lang/expect.c lang/parse.y",
    "runtime/cpu/async.c runtime/cpu/clock.c runtime/cpu/deadlock.c runtime/cpu/global.c runtime/cpu/heard.c "
    "runtime/cpu/machine.c runtime/cpu/program.c runtime/cpu/role.c runtime/cpu/touch.c runtime/cpu/view.c",
    "runtime/cuda/device.c runtime/cuda/measure.c",
    "runtime/cuda/header.c runtime/cuda/header_step.c",
]
checks = collections.Counter()


def expect(title, good):
    checks[bool(good)] += 1
    if not good:
        print("FAIL", title)


def read_map():
    """Yields (room, group, file, its place in the room): a group are the rooms of one heading, which do not know each other."""
    text = open(os.path.join(ROOT, "compiler/README.md"), encoding="utf-8").read()
    group, room, place = 0, None, 0
    for line in text.split("\n## The map\n")[1].split("\n## ")[0].splitlines():
        heading = re.match(r"(### )?`([\w/]+)/`", line)
        if heading:
            group, room = group + bool(heading.group(1)), heading.group(2)
        for cell in re.findall(r"^\| (`.*?) \|", line):
            place += 1
            for name in re.findall(r"`([^`]+)`", cell):
                yield room, group, room + "/" + name, place


def sources():
    for folder in MAPPED:
        for path, _, names in os.walk(os.path.join(ROOT, folder)):
            yield from (os.path.relpath(os.path.join(path, name), ROOT) for name in names if name.endswith(SOURCE))


def includes(file):
    text = open(os.path.join(ROOT, file), encoding="utf-8").read()
    return [name for name in re.findall(r'^\s*#include "([^"]+)"', text, re.M) if os.path.exists(os.path.join(ROOT, name))]


def calls(build):
    """{(caller, callee): names}, by the symbols of a build's objects. A function's address counts as a call."""
    objects = os.path.join(ROOT, build, "CMakeFiles/schedc_objects.dir")
    made = {"generated/parse": "lang/parse.y", "generated/lex": "lang/lex.re"}
    home, wanted = {}, collections.defaultdict(set)
    paths = glob.glob(objects + "/**/*.c.o", recursive=True)
    said = subprocess.run(["nm", "-A", *paths], capture_output=True, text=True, check=True).stdout
    for line in said.splitlines():
        path, _, symbol = line.partition(".c.o:")
        stem = re.sub(r"^.*generated/", "generated/", os.path.relpath(path, objects))
        file = made.get(stem, stem + ".c")
        if not os.path.exists(os.path.join(ROOT, file)):
            continue  # an object of a file that is gone
        kind, name = symbol.split()[-2:]
        if kind == "U":
            wanted[name].add(file)
        elif kind in "TDBRi":
            home[name] = file
    edges = collections.defaultdict(set)
    for name, callers in wanted.items():
        for caller in callers - {home.get(name)}:
            if name in home:
                edges[caller, home[name]].add(name)
    return edges


def circles(edges):
    """The sets of files that reach each other: the strongly connected components of more than one file."""
    after = collections.defaultdict(set)
    for caller, callee in edges:
        after[caller].add(callee)
    reach = {}
    for start in list(after):
        seen, todo = set(), [start]
        while todo:
            for file in after[todo.pop()] - seen:
                seen.add(file)
                todo.append(file)
        reach[start] = seen
    return {frozenset(f for f in seen if start in reach.get(f, ())) for start, seen in reach.items() if start in seen}


def hold_includes(home):
    for file, (room, group, _) in home.items():
        for name in includes(file):
            down = name.startswith("include/") or name in home and (home[name][0] == room or home[name][1] > group)
            expect(f"{file} includes {name}", down or name in BESIDE.get(room, ()))
    for folder in ("cli", "model"):
        for file in glob.glob(os.path.join(ROOT, folder, "*.[ch]")):
            for name in includes(file):
                allowed = BESIDE[folder] + (folder,)
                expect(f"{folder}/{os.path.basename(file)} includes {name}", name in allowed or os.path.dirname(name) in allowed)


def hold_calls(home, edges):
    known = [frozenset(circle.split()) for circle in CIRCLES]
    found = circles(edges)
    for circle in known:
        expect("no circle any more, to be struck from CIRCLES: " + " ".join(sorted(circle)), circle in found)
    for circle in found - set(known):
        expect("a circle of calls: " + " ".join(sorted(circle)), False)
    for (caller, callee), names in edges.items():
        (room, group, place), (to, below, at) = home[caller], home[callee]
        round_ = any(caller in circle and callee in circle for circle in found)
        expect(f"{caller} calls {callee}, which the map has above it: {' '.join(sorted(names))}",
               round_ or (at >= place if to == room else below > group))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    args = parser.parse_args()
    home, there = {}, set(sources())
    for room, group, file, place in read_map():
        expect(f"{file} stands on the map twice", file not in home)
        expect(f"{file} is on the map, and is not there", file in there)
        home[file] = room, group, place
    for file in sorted(there):
        expect(f"{file} is not on the map of compiler/README.md", file in home)
    if not checks[False]:
        edges = calls(args.build)
        expect("the build has objects", edges)
        hold_includes(home)
        hold_calls(home, edges)
    print(f"{checks[True]} passed, {checks[False]} failed, 0 skipped")
    sys.exit(checks[False] > 0)


if __name__ == "__main__":
    main()
