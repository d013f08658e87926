#!/usr/bin/env python3
"""The examples of the language reference are true, and so is what README.md shows of commands.

Takes every fenced block of lang/README.md that is marked:
  ```sched                  a complete file: `schedc check` accepts it, `schedc fmt --check` likes its form, and what
                            `schedc build` writes of it is built (where there is no NVRTC, it is written)
  ```sched run              … and `schedc run` (its first case) passes
  ```sched error R3.release    … `schedc check` rejects it, with this code and no other
A block marked `sched in NAME`, such as ```sched in role, is a fragment: the frame of that name, itself a
block ```sched frame NAME, is completed with it at the line that consists of `…`.
In README.md a block that begins with `$ schedc …` shows that command's output (times apart), and one that
begins with `fa3_fwd.sched:` the report on that schedule if the loop releases v with k, not after `wait o`.

  docs.py --schedc build/schedc [FILE …]
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

MISSING = 3  # exit code: the machine lacks something
FENCE = re.compile(r"^```sched([^\n]*)\n(.*?)^```$", re.M | re.S)


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, encoding="utf-8")
    return done.returncode, done.stdout


def built(schedc, path):
    """Is the example built? What is said of it."""
    status, out = run(schedc, "build", path, "-o", path + ".cubin")
    if status == MISSING:
        status, out = run(schedc, "build", path, "-o", path + ".cu")
    return status == 0, out


def complete(frame, fragment):
    """The frame with the fragment, indented, instead of its line `…`."""
    indent, = re.findall(r"^( *)…$", frame, re.M)
    body = "\n".join(indent + line if line else "" for line in fragment.splitlines())
    return re.sub(r"^ *…$", lambda _: body, frame, flags=re.M)


def shown(schedc, root):
    """Yields (what, is it as README.md shows it?)."""
    text = open(os.path.join(root, "README.md"), encoding="utf-8").read()
    for command, want in re.findall(r"^```\n\$ schedc ([^\n]*)\n(.*?)^```$", text, re.M | re.S):
        done = subprocess.run([schedc] + command.split(), cwd=root, stdout=subprocess.PIPE, timeout=60, encoding="utf-8")
        times = re.compile(r"\d+\.\d+ s\b")
        yield "schedc " + command, times.sub("", done.stdout) == times.sub("", want)
    reports = re.findall(r"^```\n(fa3_fwd\.sched:.*?)^```$", text, re.M | re.S)
    with open(os.path.join(root, "schedules", "fa3_fwd.sched"), encoding="utf-8") as f:
        good = f.read()
    before, loop = good.split("release tensor")
    loop = re.sub(r"release k\b.*", "release k, v", loop, count=1).replace(";  release v", "", 1)
    longer = re.sub(r"0 \.\. last - 1 \{  ( *// +7)", r"0 .. last {      \1", good)
    yield "the mistakes", len(reports) == 2 and longer != good
    for wrong, want in zip((before + "release tensor" + loop, longer), reports):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "fa3_fwd.sched"), "w", encoding="utf-8") as f:
                f.write(wrong)
            done = subprocess.run([schedc, "check", "fa3_fwd.sched"], cwd=folder, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=60, encoding="utf-8")
        if done.stderr != want:
            print(done.stderr)
        yield "the mistake " + want.split("]")[0], done.stderr == want


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", default=os.path.join(root, "build", "schedc"))
    parser.add_argument("files", nargs="*", default=[os.path.join(root, "lang", "README.md")])
    args = parser.parse_args()

    count = bad = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "example.sched")
        for name in args.files:
            text = open(name, encoding="utf-8").read()
            frames = {}
            for block in FENCE.finditer(text):
                kind, source = block.group(1).split(), block.group(2)
                line = text.count("\n", 0, block.start()) + 1
                if kind[:1] == ["frame"]:
                    frames[kind[1]] = source
                    continue
                framed = "in" in kind
                if framed:
                    source = complete(frames[kind[kind.index("in") + 1]], source)
                with open(path, "w", encoding="utf-8") as f:
                    f.write(source)
                count += 1
                status, out = run(args.schedc, "check", path)
                wrong = None
                if "error" in kind:
                    want = kind[kind.index("error") + 1]
                    codes = re.findall(r"error\[([\w.-]+)\]", out)
                    if codes != [want]:
                        wrong = f"reports {codes}, not {want}"
                elif status != 0:
                    wrong = "is rejected"
                else:
                    if "run" in kind:
                        status, out = run(args.schedc, "run", path)
                        wrong = "does not pass" if status else None
                    if not wrong and not framed:
                        status, out = run(args.schedc, "fmt", "--check", path)
                        wrong = "is not in canonical form" if status else None
                    if not wrong:
                        good, out = built(args.schedc, path)
                        wrong = None if good else "is not built"
                if wrong:
                    bad += 1
                    print(f"{os.path.relpath(name)}:{line}: the example {wrong}\n{out}")
    for what, same in [] if args.files != parser.get_default("files") else shown(os.path.abspath(args.schedc), root):
        count += 1
        if not same:
            bad += 1
            print(f"README.md: {what}: not as it shows")
    print(f"{count - bad} passed, {bad} failed, 0 skipped")
    return 1 if bad or not count else 0


if __name__ == "__main__":
    sys.exit(main())
