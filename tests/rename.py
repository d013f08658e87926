#!/usr/bin/env python3
"""Nothing in the compiler recognises a schedule: with every identifier renamed and declarations in another order, the
emitted CUDA is what it was, up to names.

Each schedule is renamed twice, with names of different lengths whose alphabetical order is once that of their first
occurrence and once its reverse; the second time neighbouring `case`s and `require`s and all kernels change order too.
Two texts are equal up to names if their identifiers correspond one to one, and all else is the same.

  rename.py --schedc build/schedc [FILE …]
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile

CONSTANTS = {"inf", "log2e", "ln2", "pi"}
WORD = re.compile(r"\b([A-Za-z_][A-Za-z0-9_]*)")


def reserved(root):
    def found(path, row):
        return set(re.findall(row, open(os.path.join(root, path), encoding="utf-8").read()))

    return (found("lang/tokens.def", r'TOK\(\w+, "([a-z]+)"') | found("compiler/ir/elem.def", r'\(\w+, +"(\w+)"')
            | found("compiler/ir/expr.def", r'"(\w+)", +(?:CALL|CHAIN),') | CONSTANTS)


def letters(n):
    return "".join(chr(ord("a") + n // 26**i % 26) for i in (2, 1, 0))


def renamings(names):
    yield {name: "v" + letters(i) for i, name in enumerate(names)}
    yield {name: "W" + letters(len(names) - i) + "_rather_long" * (i % 3) + "y" for i, name in enumerate(names)}


def rename(parts, names):
    return "".join(names.get(part, part) if i % 2 else part for i, part in enumerate(parts))


def block_end(lines, start):
    depth = 0
    for i in range(start, len(lines)):
        depth += lines[i].count("{") - lines[i].count("}")
        if depth <= 0:
            return i + 1
    return len(lines)


def reverse_runs(text, word):
    """Neighbouring declarations that begin with the word, in reverse order."""
    lines, out, i = text.split("\n"), [], 0
    while i < len(lines):
        run = []
        while i < len(lines) and re.match(rf"\s*{word}\b", lines[i]):
            end = block_end(lines, i)
            run.append(lines[i:end])
            i = end
        for declaration in reversed(run):
            out += declaration
        if not run:
            out.append(lines[i])
            i += 1
    return "\n".join(out)


def reorder(text):
    """Also the kernels, but for sequences, which come after what they launch."""
    text = reverse_runs(reverse_runs(text, "case"), "require")
    lines = [line for line in text.split("\n") if line.strip()]
    return reverse_runs("\n".join(lines), "kernel")


def emit(schedc, path, kernel):
    done = subprocess.run([schedc, "check", "--emit=cuda", path, kernel], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", timeout=60)
    if done.returncode:
        raise RuntimeError(f"{path} {kernel}: {done.stderr}")
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", done.stdout)
    code = re.sub(r"#line[^\n]*", "", code)
    return WORD.split(re.sub(r"\s+", " ", code))  # lines are broken where they are too long, and names have lengths


def difference(old, new):
    """Where the texts differ by more than names, or None."""
    there, back = {}, {}
    for i, (a, b) in enumerate(zip(old, new)):
        # The emitter's own names are the same in both, even where the schedule has one like it.
        same = a == b or i % 2 and there.setdefault(a, b) == b and back.setdefault(b, a) == a
        if not same:
            return "".join(old[max(0, i - 20) : i + 3]) + "\n  became\n" + "".join(new[max(0, i - 20) : i + 3])
    return None if len(old) == len(new) else "one is longer"


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    files = sorted(glob.glob(os.path.join(root, "schedules", "*.sched")) + glob.glob(os.path.join(root, "tests", "corpus", "*.sched")))
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", required=True)
    parser.add_argument("files", nargs="*", default=files)
    args = parser.parse_args()
    passed = failed = 0
    known = reserved(root)
    with tempfile.TemporaryDirectory() as folder:
        for path in args.files:
            text = re.sub(r"//[^\n]*", "", open(path, encoding="utf-8").read())
            parts = WORD.split(text)
            names = list(dict.fromkeys(p for i, p in enumerate(parts) if i % 2 and p not in known))
            kernels = re.findall(r"^kernel\s+(\w+)", text, re.M)
            for number, new in enumerate(renamings(names)):
                changed = rename(parts, new)
                other = os.path.join(folder, "x.sched")
                with open(other, "w", encoding="utf-8") as f:
                    f.write(reorder(changed) if number else changed)
                for kernel in kernels:
                    wrong = difference(emit(args.schedc, path, kernel), emit(args.schedc, other, new[kernel]))
                    passed, failed = passed + (not wrong), failed + bool(wrong)
                    if wrong:
                        print(f"FAIL {path} {kernel}, renaming {number}:\n{wrong}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
