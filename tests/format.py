#!/usr/bin/env python3
"""Are the sources short enough to be read at once? Held of every source of the project that is
written in C, C++ or a table for them: no line is longer than 100 columns, no function than 60
lines, no file than 500 lines but those of LONG_FILES, and clang-format has nothing to change.

  format.py [PATH …]     (all, if none is named)

A function is counted from the first line of its declaration to its closing brace. Other versions
of clang-format than the one named here lay some lines out differently: where it is missing, that
part is skipped, and counted so.
"""
import collections
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ("base", "cli", "compiler", "examples", "include", "lang", "model", "python", "runtime",
           "tests")
SOURCE = (".c", ".cpp", ".h", ".hpp", ".def", ".inc", ".re", ".y")
FORMATTED = (".c", ".h")
MAX_COLUMNS, MAX_FUNCTION, MAX_FILE = 100, 60, 500
VERSION = "14"  # of clang-format: Debian 12's
LONG_FILES = {
    "include/schedc.h": "the whole public interface, to be read in order",
}
# What may hold something like a parenthesis or a brace and is no code: comments (the rules of
# lex.re are one), texts, characters, directives with their continuation lines.
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\''
                     r'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.S | re.M)
checks = collections.Counter()


def expect(title, good):
    checks[bool(good)] += 1
    if not good:
        print("FAIL", title)


def sources():
    for folder in FOLDERS:
        for path, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in sorted(names):
                if name.endswith(SOURCE):
                    yield os.path.relpath(os.path.join(path, name), ROOT)


def code_of(text):
    """The text with all that is no code blanked, line by line the same."""
    return NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def functions(text):
    """Yields (name, first line, lines) of each function. Its brace follows a parenthesis, and it
    stands in no other braces but those of `extern "C"`, a namespace, a struct or a part of a
    grammar; the list of a definition with `=` holds none."""
    code, inside, begin = code_of(text), [], 0
    for found in re.finditer(r"[;{}]", code):
        at = found.start()
        lead = code[begin:at]
        if found[0] == "{":
            called = re.search(r"(\w+)\s*\(.*\)[\s\w]*$", lead, re.S)
            open_here = all(kind == "part" for kind, _, _ in inside)
            kind = "other" if not open_here or "=" in lead else "function" if called else "part"
            first = begin + len(lead) - len(lead.lstrip())
            inside.append((kind, called and called[1], first))
        elif found[0] == "}" and inside:
            kind, name, first = inside.pop()
            if kind == "function":
                yield name, code.count("\n", 0, first) + 1, code.count("\n", first, at) + 1
        begin = at + 1


def hold_lengths(file):
    """How many functions the file has."""
    with open(os.path.join(ROOT, file), encoding="utf-8") as source:
        text = source.read()
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            expect(f"{file}:{number}: {len(line)} columns, {MAX_COLUMNS} at most", False)
    found = list(functions(text))
    for name, first, n in found:
        if n > MAX_FUNCTION:
            expect(f"{file}:{first}: {name} has {n} lines, {MAX_FUNCTION} at most", False)
    short, listed = len(lines) <= MAX_FILE, file in LONG_FILES
    expect(f"{file} has {len(lines)} lines, {MAX_FILE} at most", short or listed)
    expect(f"{file} is short, and to be struck from LONG_FILES", not (short and listed))
    return len(found)


def clang_format():
    """The program, or None."""
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        said = path and subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        if said and re.search(rf"version {VERSION}\.", said):
            return path
    return None


def hold_format(program, files):
    done = subprocess.run([program, "--dry-run", "-Werror", *files], cwd=ROOT,
                          stderr=subprocess.PIPE, text=True)
    found = re.findall(r"^(\S+:\d+):\d+: error: code should be", done.stderr, re.M)
    for where in sorted(set(found)):
        expect(f"{where}: clang-format would change it", False)
    expect(f"clang-format fails: {done.stderr}", found or done.returncode == 0)


def main():
    named = [os.path.relpath(os.path.abspath(path), ROOT) for path in sys.argv[1:]]
    files = named or list(sources())
    counted = sum(hold_lengths(file) for file in files)
    expect(f"{counted} functions are found in {len(files)} files", counted > len(files) or named)
    program, skipped = clang_format(), 0
    if program:
        hold_format(program, [file for file in files if file.endswith(FORMATTED)])
    else:
        print(f"skipped: clang-format {VERSION} is not here")
        skipped = 1
    print(f"{checks[True]} passed, {checks[False]} failed, {skipped} skipped")
    sys.exit(checks[False] > 0)


if __name__ == "__main__":
    main()
