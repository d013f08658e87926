#!/usr/bin/env python3
"""scripts/tune-all on the model of a GPU, with small points: the table that it writes, how it goes on, shares its time out and
ends; that its lists of points are good. Without a GPU or CUDA; it needs the C++ compiler of the host.

  tune_all.py --schedc build/release/schedc
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from checks import Checks, expect  # noqa: E402
from tally import Folder  # noqa: E402
from tune import SWEPT  # noqa: E402

TABLE = "schedc-s-model-of-a-hopper-gpu.jsonl"


class Setting(Folder):
    def __init__(self, schedc, folder):
        super().__init__(schedc, folder)
        self.write("swept.sched", SWEPT)
        self.points = self.write("points.json", json.dumps({"points": [self.point("large", 128), self.point("Small, odd", 64)]}))

    def point(self, name, m, **params):
        return {"name": name, "schedule": self.path("swept.sched"), "params": params, "dims": {"M": m}}

    def command(self, *arguments, points=None, schedc=None):
        return [sys.executable, os.path.join(ROOT, "scripts", "tune-all"), "--schedc", schedc or self.schedc, "--on", "model",
                "--points", points or self.points, "--work", self.path("work"), "--out", self.path("tables"), "--least", "2",
                "--seconds", "60", "--jobs", "2", *arguments]

    def call(self, *arguments, **how):
        done = subprocess.run(self.command(*arguments, **how), stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                              env=self.env, timeout=120)
        return done.returncode, done.stdout, done.stderr

    def table(self):
        with open(self.path(os.path.join("tables", TABLE)), encoding="utf-8") as file:
            return [json.loads(line) for line in file]


def tables(s):
    """The winners, a line for each point."""
    code, out, err = s.call()
    expect(code == 0, f"exit code {code}: {out}{err}")
    expect(re.search(r"^1/2 large: .* % faster than the default: B=2 \([45] of 5 programs", out, re.M), out)
    lines = s.table()
    expect([line["dims"] for line in lines] == [{"M": 128}, {"M": 64}], lines)
    expect(all(line["tuning"] == {"B": "2"} and line["status"] == "verified" and line["rank"] == 1 for line in lines), lines)
    expect(sorted(os.listdir(s.path("work"))) == [".winners", "large.jsonl", "small-odd.jsonl"], os.listdir(s.path("work")))


def resumed(s):
    """What has a winner is not tuned again; other lines stay."""
    before = s.table()
    os.remove(s.path(os.path.join("work", "small-odd.jsonl")))
    with open(s.path(os.path.join("tables", TABLE)), "a", encoding="utf-8") as file:
        file.write(json.dumps({**before[0], "unit": "another"}) + "\n")
    code, out, _ = s.call("--resume")
    after = s.table()
    expect(code == 0 and "1/1 Small, odd: " in out and "large" not in out, out)
    expect(after[0] == before[0] and after[1]["dims"] == {"M": 64} and after[1] != before[1], after)
    expect(len(after) == 3 and after[2]["unit"] == "another", after)
    code, out, _ = s.call("--only", "large")
    again = s.table()
    expect(code == 0 and "1/1 large: " in out and "odd" not in out, out)
    expect(again[0] != after[0] and again[0]["dims"] == {"M": 128} and again[1:] == after[1:], again)


def other_kinds(s):
    """What was measured on other kinds of inputs is tuned again; as many as there are can be measured."""
    code, out, _ = s.call("--resume", "--only", "odd")
    expect(code == 0 and not out, out)
    code, out, _ = s.call("--resume", "--only", "odd", "--inputs", "normal,ramp", "--measured", "2")
    line = next(line for line in s.table() if line["dims"] == {"M": 64})
    expect(code == 0 and "1/1 Small, odd: " in out and line["measured"] == "normal,ramp", f"{out}{line}")
    for count in ("0", "3"):
        code, _, err = s.call("--measured", count)
        expect(code == 2 and f"--measured wants a number from 1 to 2, of kinds in --inputs, not {count}" in err, err)


def only_the_default(s):
    """A search that had time for nothing else says nothing of the params: the table stays."""
    before = s.table()
    wrap = s.write("hurried", f"""#!{sys.executable}
import json, subprocess, sys
done = subprocess.run(["{s.schedc}", *sys.argv[1:], "-p", "B=1"], stdout=subprocess.PIPE, encoding="utf-8")
said = json.loads(done.stdout)
said[0]["programs"] = 5
print(json.dumps(said))
sys.exit(done.returncode)
""")
    os.chmod(wrap, 0o755)
    code, out, _ = s.call("--only", "large", schedc=wrap)
    expect(code == 1 and "1/1 large: no winner: in so short a time only the default was measured" in out, out)
    expect(s.table() == before, s.table())


def short_of_time(s):
    begun = time.monotonic()
    code, out, _ = s.call("--seconds", "5")
    expect(code == 1 and "no time for 2 points, from 'large' on" in out, out)
    expect(time.monotonic() - begun < 20, f"it took {time.monotonic() - begun} s")


def without_winner(s):
    points = s.write("five.json", json.dumps({"points": [s.point("wrong", 128, B=4), s.point("right", 64)]}))
    code, out, err = s.call(points=points)
    expect(code == 1 and "1/2 wrong: no winner: wrong\n" in out and "2/2 right: " in out, out + err)
    points = s.write("missing.json", json.dumps({"points": [{**s.point("a", 64), "schedule": s.path("missing")}]}))
    code, out, err = s.call(points=points)
    expect(code == 3 and "1/1 a: no winner: cannot open the file" in out, out + err)


def interrupted(s):
    """By a signal to the script alone: the search ends, too, and the table has what was found before."""
    process = subprocess.Popen(s.command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", env=s.env)
    first = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    expect(process.returncode == 130 and "Traceback" not in err, f"{process.returncode}: {err}")
    expect(first.startswith("1/2 large: ") and "2/2" not in out and s.table()[0]["dims"] == {"M": 128}, first + out)


def told(s):
    """What `schedc tune` is asked: threads, inputs, the params of the problem and dimensions, lists among them."""
    fake = s.write("fake", f"#!/bin/sh\nprintf '%s\\n' \"$@\" > '{s.path('asked')}'\nexec '{s.schedc}' \"$@\"\n")
    os.chmod(fake, 0o755)
    point = {**s.point("a", 64, T="f16", causal=True), "kernel": "swept"}
    point["dims"]["cq"] = [0, 64]
    points = s.write("told.json", json.dumps({"points": [point]}))
    s.call("--top", "2", "--inputs", "ramp,normal", "--measured", "2", "--seconds", "30", points=points, schedc=fake)
    with open(s.path(os.path.join("work", ".winners")), encoding="utf-8") as file:
        expect([json.loads(line) for line in file] == s.table(), "the winners are not the table's")
    with open(s.path("asked"), encoding="utf-8") as file:
        asked = file.read().splitlines()
    pairs = list(zip(asked, asked[1:]))
    expect(asked[:3] == ["tune", s.path("swept.sched"), "swept"] and "--resume" in asked, asked)
    for pair in (("--jobs", "2"), ("--top", "2"), ("--inputs", "ramp,normal"), ("--measured", "2"), ("--on", "model"), ("-p", "T=f16"), ("-p", "causal=true"),
                 ("--winners", s.path(os.path.join("work", ".winners"))), ("--set", "M=64"), ("--set", "cq=[0, 64]"), ("--out", s.path(os.path.join("work", "a.jsonl"))), ("--budget", "26s")):
        expect(pair in pairs, f"{pair} is not in {asked}")


def lists(s):
    """Every point of the project is one: its params are the problem's, it has all dimensions, its name is its own."""
    names = []
    for name in ("points.json", "memory_points.json", "tuned.json"):
        with open(os.path.join(ROOT, "bench", name), encoding="utf-8") as file:
            points = json.load(file)["points"]
        for point in points:
            words = [s.schedc, "info", os.path.join(ROOT, point["schedule"]), *filter(None, [point.get("kernel")])]
            words += ["--format", "json"]
            for option, settings in (("-p", point["params"]), ("--set", point["dims"])):
                words += [w for n, v in settings.items() for w in (option, f"{n}={str(v).lower()}")]
            done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=300)
            expect(done.returncode == 0, f"{point['name']}: {done.stdout}{done.stderr}")
            known = json.loads(done.stdout)[0]
            problem = {p["name"] for p in known["parameters"] if p["kind"] == "problem"}
            expect(set(point["params"]) <= problem, f"{point['name']} has params for tuning")
            dims = set(re.findall(r"\b[A-Za-z]\w*", " ".join(d for t in known["tensors"] if t["direction"] != "workspace"
                                                           for d in t["dims"])))
            expect(dims <= set(point["dims"]), f"{point['name']} lacks {dims - set(point['dims'])}")
            names.append(re.sub("[^a-z0-9]+", "-", point["name"].lower()))
    expect(len(set(names)) == len(names), "two points have the same name")


def refused(s):
    for arguments in (["--points", s.path("nothing")], ["--winners", s.path("nothing")], ["--only", "xyz"], ["--on", "cpu"]):
        code, _, err = s.call(*arguments)
        expect(code == 2 and "usage" in err, f"{arguments}: {code}, {err}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default=os.path.join("build", "release", "schedc"))
    parser.add_argument("--only", metavar="REGEX")
    args = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin with it ignored
    checks = Checks(args.only)
    with tempfile.TemporaryDirectory() as folder:
        s = Setting(args.schedc, folder)
        for function in (tables, resumed, other_kinds, only_the_default, short_of_time, without_winner, interrupted, told, lists, refused):
            checks.run(function.__name__, function, s)
    return checks.tell()


if __name__ == "__main__":
    sys.exit(main())
