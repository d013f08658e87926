#!/usr/bin/env python3
"""Does the map of compiler/README.md say what the tree is?

  rooms.py [--build build/release]

In: the tables of the map, from top to bottom, and the objects of a build. Held: every source file
of base, lang, compiler and runtime stands on the map, once, and nothing else does; no file includes
a header from a room above its own, or calls a function there; inside a room callers stand above
what they call, but in the circles that are listed here; and a function that a header declares is
used in another file than its own.
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
MADE = {"generated/parse": "lang/parse.y", "generated/lex": "lang/lex.re"}
# What lies beside the map may include of it these files and rooms, and what of it the map may.
BESIDE = {
    "cli": ("base", "runtime/run.h"),
    "model": ("runtime/run.h", "runtime/data/clones.h", "runtime/data/tensorsum.h", "compiler/emit/prims.def"),
    "runtime/cuda": ("model/fault.h",),
}
# Files of a room that call each other in circles. None may be added; one that is gone is to be
# struck.
CIRCLES = [
    ("compiler/emit", "expr.c inside.c tile.c"),  # an element's position is an expression, too
    ("compiler/lower", "def.c expr.c view.c"),  # positions and arguments are expressions, too
    ("lang", "drive.c expect.c parse.y"),  # the driver asks the grammar, and its actions the driver
]
# Functions of headers that no other file uses yet.
WAITING = ()  # for files that are being written
# Of a file on the map: its room; the number of the heading, as the rooms of one heading do not know
# each other; its row.
Place = collections.namedtuple("Place", "room heading row")
checks = collections.Counter()


def expect(title, good):
    checks[bool(good)] += 1
    if not good:
        print("FAIL", title)


def read_map():
    """Yields (file, Place)."""
    text = open(os.path.join(ROOT, "compiler/README.md"), encoding="utf-8").read()
    heading, room, row = 0, None, 0
    for line in text.split("\n## The map\n")[1].split("\n## ")[0].splitlines():
        begin = re.match(r"(### )?`([\w/]+)/`", line)
        if begin:
            heading, room = heading + bool(begin.group(1)), begin.group(2)
        for cell in re.findall(r"^\| (`.*?) \|", line):
            row += 1
            for name in re.findall(r"`([^`]+)`", cell):
                yield f"{room}/{name}", Place(room, heading, row)


def sources():
    for folder in MAPPED:
        for path, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in names:
                if name.endswith(SOURCE):
                    yield os.path.relpath(os.path.join(path, name), ROOT)


def includes(file):
    text = open(os.path.join(ROOT, file), encoding="utf-8").read()
    names = re.findall(r'^\s*#include "([^"]+)"', text, re.M)
    return [name for name in names if os.path.exists(os.path.join(ROOT, name))]


def calls(build):
    """{(caller, callee): names}, by the symbols of a build. A function's address is a call."""
    objects = os.path.join(ROOT, build, "CMakeFiles/schedc_objects.dir")
    home, wanted = {}, collections.defaultdict(set)
    paths = glob.glob(objects + "/**/*.c.o", recursive=True)
    said = subprocess.run(["nm", "-A", *paths], capture_output=True, text=True, check=True).stdout
    for line in said.splitlines():
        path, _, symbol = line.partition(".c.o:")
        stem = re.sub(r"^.*generated/", "generated/", os.path.relpath(path, objects))
        file = MADE.get(stem, stem + ".c")
        if not os.path.exists(os.path.join(ROOT, file)):
            continue  # an object of a file that is gone
        kind, name = symbol.split()[-2:]
        if kind == "U":
            wanted[name].add(file)
        elif kind in "TDBRi":
            home[name] = file
    edges = collections.defaultdict(set)
    for name, callers in wanted.items():
        for caller in callers:
            if name in home:
                edges[caller, home[name]].add(name)
    return edges


def circles(edges):
    """The sets of files that reach each other: strongly connected components of more than one."""
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
    return {frozenset(file for file in seen if start in reach.get(file, ()))
            for start, seen in reach.items() if start in seen}


def hold_includes(places):
    for file, place in places.items():
        for name in includes(file):
            to = places.get(name)
            expect(f"{file} includes {name}",
                   name.startswith("include/") or name in BESIDE.get(place.room, ()) or
                   to and (to.room == place.room or to.heading > place.heading))
    for folder in ("cli", "model"):
        allowed = BESIDE[folder] + (folder,)
        for path in glob.glob(os.path.join(ROOT, folder, "*.[ch]")):
            file = os.path.relpath(path, ROOT)
            for name in includes(file):
                expect(f"{file} includes {name}", {name, os.path.dirname(name)} & set(allowed))


def hold_calls(places, edges):
    known = {frozenset(f"{room}/{file}" for file in files.split()) for room, files in CIRCLES}
    found = circles(edges)
    for circle in known - found:
        expect("no circle any more, to be struck from CIRCLES: " + " ".join(sorted(circle)), False)
    for circle in found - known:
        expect("a circle of calls: " + " ".join(sorted(circle)), False)
    for (caller, callee), names in edges.items():
        place, to = places[caller], places[callee]
        down = to.row >= place.row if to.room == place.room else to.heading > place.heading
        expect(f"{caller} calls {callee}, above it on the map: {' '.join(sorted(names))}",
               down or any({caller, callee} <= circle for circle in found))


def declared(file):
    """The functions that a header declares."""
    text = open(os.path.join(ROOT, file), encoding="utf-8").read()
    return re.findall(r"^(?!static|typedef)\w[\w *]*?\b(\w+)\([^{;]*\)[\w() ]*;", text, re.M)


def hold_declared(there):
    """A function that a header declares is used in another file than its own: of the library, the
    command or the tests."""
    homes = {name: file for file in there if file.endswith(".h") for name in declared(file)}
    uses = collections.defaultdict(dict)
    users = there | {os.path.relpath(path, ROOT) for folder in ("cli", "model", "tests")
                     for path in glob.glob(f"{ROOT}/{folder}/**/*", recursive=True)
                     if path.endswith(SOURCE + (".hpp", "header.py"))}
    for file in users:
        text = open(os.path.join(ROOT, file), encoding="utf-8").read()
        for word, n in collections.Counter(re.findall(r"\w+", re.sub(r"//.*", "", text))).items():
            uses[word][file] = n
    expect("headers declare functions", len(homes) > 300)
    for name, header in sorted(homes.items()):
        macro = uses[name].pop(header) > 1
        expect(f"{name}, declared in {header}, is used in no file but its own: it could be static",
               macro or len(uses[name]) > 1 or name in WAITING)
        expect(f"{name} is used, and to be struck from WAITING",
               name not in WAITING or len(uses[name]) < 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    args = parser.parse_args()
    places, there = {}, set(sources())
    hold_declared(there | {os.path.relpath(path, ROOT) for path in glob.glob(ROOT + "/cli/*.[ch]")})
    for file, place in read_map():
        expect(f"{file} stands on the map twice", file not in places)
        expect(f"{file} is on the map, and is not there", file in there)
        places[file] = place
    for file in sorted(there):
        expect(f"{file} is not on the map of compiler/README.md", file in places)
    if not checks[False]:
        edges = calls(args.build)
        expect("the build has objects", edges)
        hold_includes(places)
        hold_calls(places, edges)
    print(f"{checks[True]} passed, {checks[False]} failed, 0 skipped")
    sys.exit(checks[False] > 0)


if __name__ == "__main__":
    main()
