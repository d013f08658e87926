#!/usr/bin/env python3
"""Is the emitted CUDA C what it was? tests/golden/texts.txt has a hash of each text that schedc writes for the kernels
and sequences of schedules/, tests/corpus/, tests/golden/ and tests/gpu/: with their defaults and with the parameters of
each of their cases, with and without --debug-waits. So a change of text is always seen, and always meant.

Equal texts of a kernel have one line. Where schedc refuses, the line has the code of the diagnostic. The lines of
`#line` are counted from the first in a kernel: a case more, or a comment at the head of a schedule, changes no hash.

  texts.py [--schedc build/release/schedc]                   compares
  texts.py [--schedc build/release/schedc] --update          rewrites the table
  texts.py [--schedc build/release/schedc] --write FOLDER    writes the texts themselves, a file each
"""
import argparse
import glob
import hashlib
import os
import re
import sys

import configs

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ["schedules", "tests/corpus", "tests/golden", "tests/gpu"]
TABLE = "tests/golden/texts.txt"
HOW = f"""
One of these texts, as it is now:
  schedc build FILE KERNEL -p NAME=VALUE --to cu -o -
All that has changed, with the commit before built in ../before:
  ../before/tests/texts.py --write /tmp/before;  tests/texts.py --write /tmp/after;  diff -ru -I '#line' /tmp/before /tmp/after
If it is meant, `tests/texts.py --update` rewrites {TABLE}, and the commit says what has changed."""


def emitted(schedc):
    """(name, text, what else is said) of each; name: the arguments of `schedc build`. What is refused has no text."""
    for path in sorted(path for folder in FOLDERS for path in glob.glob(f"{folder}/*.sched")):
        for kernel, body, _ in configs.units(path):
            try:
                found = configs.settings(schedc, path, kernel, body)
            except RuntimeError:  # refused: below, it is told why
                found = [[]]
            for options in found:
                for debug in ([], ["--debug-waits"]):
                    name = " ".join([path, kernel, *options, *debug])
                    done = configs.run(schedc, "build", path, kernel, *options, *debug, "--to", "cu", "-o", "-")
                    if done.returncode not in (0, 1):
                        raise SystemExit(f"schedc build {name}: exit code {done.returncode}\n{done.stderr}")
                    yield name, done.stdout if done.returncode == 0 else None, done.stderr


def hashed(text):
    first = None  # line of this kernel

    def counted(found):
        nonlocal first
        if found[2]:  # the file's name begins a kernel
            first = None
            return "#line" + found[2]
        first = int(found[1]) if first is None else first
        return f"#line {int(found[1]) - first}"
    text = re.sub(r'^ *#line (\d+)( ".*")?', counted, text, flags=re.M)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def distinct(schedc):
    """{name: (what its line begins with, text)}, equal texts of a kernel once."""
    found, seen = {}, set()
    for name, text, said in emitted(schedc):
        mark = hashed(text) if text else re.search(r"error\[([\w.]+)\]", said)[1]
        if (*name.split()[:2], mark) not in seen:
            seen.add((*name.split()[:2], mark))
            found[name] = mark, text
    return found


def write(folder, found):
    for name, (_, text) in found.items():
        path = os.path.join(folder, name.replace(" ", "/", 1).replace(" ", "_") + ".cu")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text or "")


def compare(found):
    with open(TABLE, encoding="utf-8") as file:
        old = {name: mark for mark, name in (line.split(maxsplit=1) for line in file.read().splitlines())}
    new = {name: mark for name, (mark, _) in found.items()}
    wrong = [(name, "changed" if name in old and name in new else "new" if name in new else "gone")
             for name in {**old, **new} if old.get(name) != new.get(name)]
    for name, how in wrong:
        print(f"{how:8} {name}")
    if wrong:
        print(HOW)
    print(f"{sum(old.get(name) == new[name] for name in new)} passed, {len(wrong)} failed, 0 skipped")
    return 1 if wrong or not new else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "release", "schedc"))
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--write", metavar="FOLDER")
    args = parser.parse_args()
    schedc, folder = os.path.abspath(args.schedc), args.write and os.path.abspath(args.write)
    os.chdir(ROOT)  # the texts name their file
    found = distinct(schedc)
    if folder:
        write(folder, found)
    elif args.update:
        with open(TABLE, "w", encoding="utf-8") as file:
            file.writelines(f"{mark:16}  {name}\n" for name, (mark, _) in found.items())
        print(f"{len(found)} texts in {TABLE}")
    else:
        return compare(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
