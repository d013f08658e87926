#!/usr/bin/env python3
"""`schedc tune` on the model of a GPU: what it chooses, what it says, and what it writes into a store. Without a GPU or CUDA;
it needs the C++ compiler of the host.

  tune.py --schedc build/release/schedc

Times on the model are the host's: the programs differ by so much work that nothing else matters.
"""
import argparse
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time

from tally import Folder, expect, tell

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# B = 2 is the fastest that is right. 4 does next to nothing and is wrong; 3 is rejected when it is built, or hangs; 5 does
# not fit.
SWEPT = """kernel swept {
  param B = 1 in { 1 .. 7 }
  in  X : f32[M, 32]
  out Y : f32[M, 32]
  spec { Y[i,j] = 2 * X[i,j] }
  case small { M = 128 }
  case other { M = 64 }
  grid (x : cdiv(M, 64))
  ring r : f32[64, 32] * (B == 5 ? 60 : 2)
  let rounds = B == 4 ? 1 : B == 2 ? 9 : B == 6 ? 75 : 80
  role load : 1 warp, 40 regs { for t in 0 .. rounds { r <- X[x*64..] } }
  role math : 1 warpgroup, 128 regs {
    for t in 0 .. B == 3 ? rounds + 1 : rounds {
      wait r
      Y[x*64 + i, j] = (B == 4 ? 3 : 2) * r[i,j]
      release r
    }
  }
}
"""
# Where a row has a large number, B = 3 does more than the others; where none has, less.
KINDS = """kernel kinds {
  param B = 1 in { 1 .. 4 }
  in  X : f32[M, 32]
  out Y : f32[M, 32]
  spec { Y[i,j] = 2 * X[i,j] }
  case small { M = 128 }
  grid (x : cdiv(M, 64))
  ring r : f32[64, 32] * 2
  let rounds = B == 1 ? 160 : B == 2 ? 24 : 6
  role load : 1 warp, 40 regs { for t in 0 .. rounds { r <- X[x*64..] } }
  role math : 1 warpgroup, 128 regs {
    reg a : f32[64, 32], m : f32[64]
    for t in 0 .. rounds {
      wait r
      a[i,j] = r[i,j]
      release r
      m[i] = max(j) a[i,j]
      vote any(m[i] > (B == 3 ? 16 : 1e9)) {
        for u in 0 .. 2500 { a[i,j] = max(a[i,j], a[i,j] - u) }
      }
      Y[x*64 + i, j] = 2 * a[i,j]
    }
  }
}
"""
MEMBERS = {"store": int, "schedule": str, "unit": str, "problem": dict, "dims": dict, "bucket": dict, "gpu": str, "driver": int,
           "nvrtc": int, "schedc": str, "tuning": dict, "status": str, "inputs": str, "measured": str, "cold_ms": (int, float),
           "sustained_ms": (int, float), "noise": (int, float), "reference_ms": (int, float), "launches": int, "rank": int,
           "date": str}


class Setting(Folder):
    def __init__(self, schedc, folder):
        super().__init__(schedc, folder)
        self.file = self.write("swept.sched", SWEPT)

    def command(self, *arguments, file=None):
        return [self.schedc, "tune", file or self.file, "--on", "model", "--top", "4", "--jobs", "2", *arguments]

    def call(self, *arguments, file=None):
        done = subprocess.run(self.command(*arguments, file=file), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                              encoding="utf-8", env=self.env)
        return done.returncode, done.stdout, done.stderr

    def json(self, *arguments, file=None):
        code, out, err = self.call("--format", "json", *arguments, file=file)
        try:
            return code, json.loads(out)
        except ValueError:
            expect(f"JSON of {arguments}", False, code, out, err)
            return code, []

    def lines(self, name):
        """The store's lines, each with every member that the README lists, and no other."""
        with open(os.path.join(ROOT, "runtime", "tune", "README.md"), encoding="utf-8") as file:
            listed = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", file.read(), re.M)
        members = [word for row in listed for word in re.findall(r"\w+", row)]
        expect("the README's members", sorted(members) == sorted(MEMBERS), members)
        lines = []
        with open(self.path(name), encoding="utf-8") as file:
            for line in file:
                record = json.loads(line)
                expect("members of a line", list(record) == list(MEMBERS), record)
                expect("their types", all(isinstance(record[m], t) for m, t in MEMBERS.items()), record)
                lines.append(record)
        return lines


def value(candidate):
    return int(candidate["params"].get("B", 1))


def by_value(result):
    return {value(c): c for c in result["candidates"]}


def chose(got, best):
    """`best` was chosen; or the default, where the machine was so busy that the noise is larger than the lead of `best`."""
    return value(got["chosen"]) == best or (got["chosen"]["default"] and by_value(got)[best]["ratio"] > 1 - got["noise"])


def chooses(s):
    code, (got,) = s.json("--out", s.path("store"))
    expect("exit code", code == 0, code)
    expect("the fastest that is right", chose(got, 2) and by_value(got)[2]["ratio"] < 0.7, got)
    expect("refused", got["refused"] == {"R8.smem": 1} and (got["points"], got["legal"]) == (6, 5), got)
    found = by_value(got)
    expect("wrong results cannot win", found[4]["failed"] == "wrong" and not found[4]["verified"], found[4])
    expect("what cannot be built", found[3]["failed"] == "R5.agree" and found[3]["rungs"] == 0, found[3])
    expect("the others are right", all(found[b]["verified"] and found[b]["turns"] for b in (1, 2, 6)), found)
    expect("the default", found[1]["default"] and found[1]["ratio"] == 1 and not found[2]["default"], found)
    lines = s.lines("store")
    status = {b: [line["status"] for line in lines if line["tuning"]["B"] == str(b)] for b in range(1, 7)}
    expect("lines of what fails", status[3] == ["R5.agree"] and status[4][-1] == "wrong" and status[5] == [], status)
    final = sorted((line["rank"], int(line["tuning"]["B"])) for line in lines if line["status"] == "verified")
    expect("lines of the finalists", [rank for rank, _ in final] == [1, 2, 3] and final[0] == (1, 2), final)
    for line in lines:
        verified, time = line["status"] == "verified", line["status"] in ("verified", "measured")
        expect("a line", line["inputs"] == ("normal,outliers,ramp" if verified else "") and line["dims"] == {"M": 128}
               and line["measured"] == ("normal" if time else "") and line["unit"] == "swept" and (line["sustained_ms"] > 0) == time and (line["launches"] > 0) == time
               and line["gpu"] == got["device"] and (line["rank"] > 0) == verified, line)


def measures_on_several_kinds(s):
    file = s.write("kinds.sched", KINDS)
    for inputs, count, best, known in (("normal,large", 1, 3, 0), ("large,normal", 1, 2, 0), ("normal,large", 2, 2, 0),
                                       ("normal,large", 2, 2, 2)):
        before = s.lines("kinds") if os.path.exists(s.path("kinds")) else []
        code, (got,) = s.json("--inputs", inputs, "--measured", str(count), "--out", s.path("kinds"), "--resume", file=file)
        what = f"on {count} of {inputs}"
        expect(what, code == 0 and chose(got, best), got)
        expect(f"{what}: so it says", (got["inputs"], got["measured"]) == (inputs.split(","), inputs.split(",")[:count]), got)
        expect(f"{what}: what is known was measured on the same", min(got["known"], known) == known and (known or not got["known"]), got)
        new = [line for line in s.lines("kinds")[len(before):] if line["sustained_ms"] > 0]
        expect(f"{what}: the lines say so", new and all(line["measured"] == ",".join(inputs.split(",")[:count]) for line in new), new)
        if not known and count == 2:
            times = {line["tuning"]["B"]: line["sustained_ms"] for line in new if line["rank"] > 0}
            expect(f"{what}: a mean of both", times["2"] < times["3"], times)
    for more, count, kinds in (([], 0, 3), ([], 4, 3), (["--inputs", "large"], 2, 1)):
        code, out, err = s.call("--measured", str(count), *more, file=file)
        expect(f"{count} of {kinds}", code == 2 and f"--measured wants a number from 1 to {kinds}, of kinds in --inputs, not {count}" in err, err)


def needs_no_case(s):
    """The first case has a param for tuning, which is the default only where the case gives dimensions."""
    file = s.write("cased.sched", SWEPT.replace("case small { M = 128 }", "case small { B = 6, M = 128 }"))
    for given, default, case in (([], 6, "small"), (["--set", "M=128"], 1, None), (["--set", "M=128", "--case", "small"], 6, "small")):
        code, (got,) = s.json(*given, file=file)
        defaults = [value(c) for c in got["candidates"] if c["default"]]
        expect(f"the default with {given}", code == 0 and defaults == [default] and got["case"] == case, code, got)


def resumes(s):
    before = s.lines("store")
    code, (got,) = s.json("--out", s.path("store"), "--resume")
    lines = s.lines("store")
    new = [(line["tuning"]["B"], line["status"]) for line in lines[len(before):]]
    expect("resumed", code == 0 and chose(got, 2) and got["known"] >= 4, got)
    expect("only the default and the finals anew", all(b == "1" or status == "verified" for b, status in new), new)
    expect("what failed is known", by_value(got)[3]["failed"] == "R5.agree" and by_value(got)[4]["failed"] == "wrong", got)
    for more in (["--case", "other"], ["-p", "B=2"]):
        code, (got,) = s.json("--out", s.path("store"), "--resume", *more)
        expect(f"of another key: {more}", code == 0 and got["known"] == 0, got)


def without_a_legal_default(s):
    file = s.write("five.sched", SWEPT.replace("B = 1 in", "B = 5 in"))
    code, (got,) = s.json(file=file)
    expect("no legal default", code == 0 and value(got["chosen"]) == 2 and not any(c["default"] for c in got["candidates"]), got)
    file = s.write("none.sched", SWEPT.replace("B == 5 ? 60", "B > 0 ? 60"))
    code, out, err = s.call(file=file)
    expect("nothing is legal", code == 1 and "R8.smem" in err and not out, code, out, err)
    file = s.write("wrong.sched", SWEPT.replace("B == 4 ? 3", "B > 0 ? 3"))
    code, out, err = s.call(file=file)
    expect("nothing is right", code == 1 and "chosen: nothing" in out and out.count("wrong results") == 4, code, out, err)


def faults(s):
    """A program that ends in a fault takes the context with it; the others are measured on a new one."""
    code, (got,) = s.json("--unverified")
    expect("after a fault", code == 0 and chose(got, 2), got)
    expect("the fault", by_value(got)[3]["failed"] == "G.model", by_value(got)[3])
    expect("wrong as before", by_value(got)[4]["failed"] == "wrong", got)


def tells(s):
    code, out, err = s.call()
    # (Where it takes long, it says every few seconds how far it is.)
    expect("text", code == 0 and all(line.startswith("tune: ") for line in err.splitlines()), code, err)
    expect("the table", re.search(r"^ +1  B=2 .* 0\.\d+ .* %$", out, re.M) and re.search(r"^ +\d  \(default\) .* 1\.000 ", out, re.M),
           out)
    expect("inputs", "\n  inputs  right on normal, outliers, ramp; measured on normal\n" in out, out)
    expect("what failed", "1 failed: R5.agree" in out and re.search(r"^ +B=4 +wrong results$", out, re.M), out)
    expect("the choice", re.search(r"^  chosen: B=2, [\d.]+ % faster than the default; the noise is", out, re.M), out)
    master, slave = pty.openpty()
    command = subprocess.Popen(s.command(), stdout=subprocess.PIPE, stderr=slave, env=s.env)
    os.close(slave)
    shown = b""
    try:
        while True:
            shown += os.read(master, 4096)
    except OSError:  # the other side is closed
        pass
    expect("ends", command.wait() == 0)
    shown = shown.decode()
    expect("progress", re.search(r"\rtune: \d+ done, \d+ left.*best [\d.]+ ms, [\d.]+ of the default; .* s; ", shown), repr(shown))
    expect("it is taken away again", shown.endswith("\r\x1b[K"), repr(shown[-100:]))


def is_interrupted(s):
    store = s.path("interrupted")
    command = subprocess.Popen(s.command("--set", "M=1280", "--out", store), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=s.env, encoding="utf-8")
    until = time.time() + 60
    while time.time() < until and not (os.path.exists(store) and "measured" in open(store, encoding="utf-8").read()):
        time.sleep(0.05)
    command.send_signal(signal.SIGINT)
    out, err = command.communicate(timeout=60)
    expect("ended by the signal", command.returncode == -signal.SIGINT, command.returncode, err)
    expect("with what was found", "interrupted" in out and "chosen:" in out, out, err)
    kept = s.lines("interrupted")
    expect("what was measured is kept", kept and not any(line["status"] == "verified" for line in kept), kept)


def has_a_budget(s):
    start = time.time()
    code, (got,) = s.json("--set", "M=1280", "--budget", "1s")
    expect("out of time", got["hurried"] and time.time() - start < 60, got, time.time() - start)
    expect("nothing unverified is chosen", not got["chosen"] or got["chosen"]["verified"], code, got)


def strategies(s):
    code, (got,) = s.json("--strategy", "exhaustive")
    expect("exhaustive", code == 0 and chose(got, 2) and max(c["rungs"] for c in got["candidates"]) == 1, got)
    code, (got,) = s.json("--strategy", "model", "--top", "1")
    expect("by the model", code == 0 and len(got["candidates"]) <= 4, got)


def shapes(s):
    listed = s.write("shapes", "# two of them\nother B=2\n\nM=192 B=1   # and a comment\n")
    code, got = s.json("--shapes", listed)
    expect("shapes", code == 0 and [(g["case"], g["dims"]) for g in got] == [("other", {"M": 64}), (None, {"M": 192})], got)
    expect("their params", [g["points"] for g in got] == [1, 1], got)
    code, out, _ = s.call("--shapes", listed, "-p", "B=6", "--set", "M=100")
    expect("lines are over options", code == 0 and "M = 100\n" in out and "M = 192\n" in out and "B = 2\n" in out, out)
    code, got = s.json("--shapes", s.write("some", "M=128 B=9\nother B=2\nM=128 B=8\n"))
    expect("refused shapes", code == 1 and [[r["code"] for r in g["reports"]] for g in got] == [["P.domain"], [], ["P.domain"]] and
           ["chosen" in g for g in got] == [False, True, False], got)
    for text, says in (("", "has no shapes"), ("# none", "has no shapes"), ("small large", "'large' in"), ("N=5", "'N' is not"),
                       ("M=x", "wants a length")):
        code, out, err = s.call("--shapes", s.write("bad", text))
        expect(f"a file of shapes: {text}", code == 2 and says in err, code, out, err)
    code, out, err = s.call("--shapes", s.path("missing"))
    expect("no such file", code == 3 and "cannot read" in err, err)


def callers(s):
    """tuners.c: a search by hand, and one by the library, on tensors and a stream of the caller's."""
    beside, program = os.path.dirname(s.schedc), s.path("tuners")
    library, model = (os.path.join(beside, name) for name in ("libschedc.so", "libschedc_model.so"))
    built = subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-I", os.path.join(ROOT, "include"),
                            os.path.join(ROOT, "tests", "tuners.c"), library, model, f"-Wl,-rpath,{beside}", "-o", program],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
    expect("tuners.c builds", built.returncode == 0, built.stdout)
    if built.returncode:
        return
    for policy in ("late", "random,seed=2"):
        done = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=120,
                              env={**s.env, "SCHEDC_DRIVER": model, "SCHEDC_NVRTC": model, "SCHEDC_MODEL": f"policy={policy}"})
        expect(f"tuners.c, {policy}", done.returncode == 0 and "trials by hand" in done.stdout, done.returncode, done.stdout)


def winners_first(s):
    """Of a store with another form of the schedule, at another shape, on another GPU."""
    line = next(line for line in s.lines("store") if line["rank"] == 1)
    won = {**line, "schedule": "0" * 32, "dims": {"M": 7}, "bucket": {"M": 8}, "gpu": "another", "tuning": {"B": "6"}}
    path = s.write("won.jsonl", json.dumps(won) + "\n")
    for given, first in ((["--winners", path], "6"), ([], "4")):
        if os.path.exists(s.path("order")):
            os.remove(s.path("order"))
        code, (got,) = s.json("--jobs", "1", "--out", s.path("order"), *given)
        order = [line["tuning"].get("B", "1") for line in s.lines("order") if line["status"] == "measured"]
        expect(f"first with {given}", code == 0 and next(b for b in order if b != "1") == first, order)


def wrong_uses(s):
    for arguments, code, says in (
            (["--resume"], 2, "--resume"), (["--winners", s.path("nothing")], 3, "'--winners' wants a store that is there"),
            (["--budget", "soon"], 2, "wants a time"), (["--budget", "0"], 2, "wants a time"),
            (["--budget", "5min"], 2, "wants a time"), (["--on", "cpu"], 2, "leave '--on cpu' out"),
            (["--strategy", "luck"], 2, "halving, exhaustive, model"), (["--jobs", "65"], 2, "--jobs is 64 at most"),
            (["--inputs", "normal,hill"], 2, "'hill'"), (["--case", "none"], 1, "P.case"), (["-p", "B=9"], 1, "P.domain"),
            (["nokernel"], 1, "P.unit"), (["--out", "/nowhere/store"], 3, "F.store"), (["--out", s.file], 1, "F.store")):
        got, out, err = s.call(*arguments)
        expect(f"{arguments}: {code}, {says}", got == code and says in err, got, out, err)
    for command in ("tune", "bench"):
        said = subprocess.run([s.schedc, command, "--help"], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
        expect(f"{command} --help offers what is taken", "--on cuda|model " in said and "cpu|" not in said, said)
    done = subprocess.run([s.schedc, "tune", s.file], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                          env={**s.env, "SCHEDC_DRIVER": s.path("none")})
    expect("without a GPU", done.returncode == 3 and not done.stdout and done.stderr, done)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "release", "schedc"))
    args = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin with it ignored
    with tempfile.TemporaryDirectory() as folder:
        s = Setting(args.schedc, folder)
        for test in (chooses, measures_on_several_kinds, needs_no_case, resumes, without_a_legal_default, winners_first, faults, tells,
                     is_interrupted, has_a_budget, strategies, shapes,
                     callers, wrong_uses):
            test(s)
    return tell()


if __name__ == "__main__":
    sys.exit(main())
