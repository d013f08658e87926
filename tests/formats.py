#!/usr/bin/env python3
"""What schedc writes for machines: JSON that parses and says what the text says, SARIF that fits its schema; and how
`schedc fmt` writes files.

  formats.py --schedc build/schedc
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import jsonschema

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


BETWEEN_ROLES = {"R5.agree", "R6.deadlock", "R6.dealt", "R6.key", "R10.race"}


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def expect(self, what, holds):
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)
        if not holds:
            print("FAIL", what)


def output(schedc, *args):
    done = subprocess.run([schedc, *args], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def check_reports(checks, schedc, schema, path):
    text = output(schedc, "check", path)[2]
    reports = json.loads(output(schedc, "check", "--format", "json", path)[1])
    for r in reports:
        head = f"{r['file']}:{r['range']['line']}:{r['range']['column']}: {r['severity']}[{r['code']}]: {r['text']}"
        checks.expect(f"{path}: the text form has '{head}'", head in text)
    checks.expect(f"{path}: as many reports", len(reports) == text.count("error[") + text.count("warning["))
    log = json.loads(output(schedc, "check", "--format", "sarif", path)[1])
    try:
        jsonschema.Draft7Validator(schema).validate(log)
        checks.expect("", True)
    except jsonschema.ValidationError as error:
        checks.expect(f"{path}: SARIF: {error.message} at {list(error.absolute_path)}", False)
    rules = [rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]]
    results = log["runs"][0]["results"]
    checks.expect(f"{path}: SARIF has the same", [r["ruleId"] for r in results] == [r["code"] for r in reports])
    for result, report in zip(results, reports):
        checks.expect(f"{path}: rule index", rules[result["ruleIndex"]] == result["ruleId"])
        if report["code"] in BETWEEN_ROLES:
            checks.expect(f"{path}: {report['code']}: both ends", has_both_ends(report))
            checks.expect(f"{path}: {report['code']}: a code flow over both ends", flows(result, report))
    return {report["code"] for report in reports}


def place(where):
    """Where a report or a note stands, of JSON or of SARIF."""
    if "region" in where:
        where = where["region"]
        return where["startLine"], where["startColumn"]
    return where["line"], where["column"]


def has_both_ends(report):
    """Is there a note at another place, which is not the kernel's name, where commands stand?"""
    notes = [n for n in report["notes"] if "to see it" not in n["text"] and "this is so where" not in n["text"]]
    same = report["code"] == "R10.race"  # an operation may race with itself, in another tile
    return any(same or place(n["range"]) != place(report["range"]) for n in notes)


def flows(result, report):
    """Does the one flow of SARIF go through all notes to the report?"""
    (flow,) = result.get("codeFlows", [{"threadFlows": [{"locations": []}]}])
    (thread,) = flow["threadFlows"]
    places = [place(step["location"]["physicalLocation"]) for step in thread["locations"]]
    texts = [step["location"]["message"]["text"] for step in thread["locations"]]
    return (places == [place(n["range"]) for n in report["notes"]] + [place(report["range"])]
            and texts == [n["text"] for n in report["notes"]] + [report["text"]])


REFUSED = """kernel k {
  param BM = 64 in { 64, 128 }
  in X : f32[M, 32]
  out Y : f32[M, 32]
  spec { Y[i,j] = X[i,j] }
  case a { M = 10 }
  case b { BM in { 64, 128 }, M in { 10, 20 } }
  case c { BM = 128, M = 64 }
  grid (x : cdiv(M, BM))
  ring r : f32[BM, 32]
  role load : 1 warp, 24 regs { r <- X[x*BM..] }
  role st : 1 warpgroup, 128 regs {
    reg s : f32[BM, 32]
    wait r
    s[i,j] = r[i,j]
    if BM == 64 { release r }
    Y[x*BM + i, j] = s[i,j]
  }
}
"""


# Integers made of elements of `a`, in a bound, and of `b`, which are declared. Those of `c` are compared, picked and places, no more.
ELEMENTS = """
kernel k {
  in  a, c : i32[n], b : i32[n] in 0 .. n, X : f32[64]
  out Y : f32[64]
  role all : 1 warpgroup {
    reg y : f32[64]
    y[i] = 0
    for t in 0 .. n {
      if a[t] + 1 > 2 and b[t] + 1 > 2 and min(c[t], 7) > 2 and (c[t] > 0 ? 1 : 0) + a[c[t]] > 1 { y[i] = y[i] + X[i] }
    }
    Y[i] = y[i]
  }
}
"""


def check_assumed(checks, schedc):
    """The certificate says of which elements no launch can tell whether what is made of them has 32 bits."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "k.sched")
        with open(path, "w", encoding="utf-8") as file:
            file.write(ELEMENTS)
        code, text, _ = output(schedc, "info", "--format", "json", path)
    assumed = json.loads(text)[0]["certificate"]["assumptions"]
    fits = [a.split("'")[1] for a in assumed if "fit in 32 bits" in a]
    checks.expect("info: what fits in 32 bits", code == 0 and fits == ["a"])


def check_info_fails(checks, schedc):
    """Where there is nothing to describe, the document is the array of what is wrong, as that of `check` and `run`."""
    copy = "schedules/copy.sched"
    for code, report, words in ((3, "F.read", ["no such file"]), (1, "P.domain", [copy, "-p", "BM=3"]),
                                (1, "P.unit", [copy, "nokernel"]), (1, "P.case", [copy, "--case", "nosuch"]),
                                (1, "S.char", ["tests/fuzz/npy_seeds.py"])):
        was, text, err = output(schedc, "info", *words, "--format", "json")
        checks.expect(f"info {words}: {was}, {text}{err}", was == code and text and json.loads(text)[0]["code"] == report)
    was, text, err = output(schedc, "info", copy, "--set", "Q=3", "--format", "json")
    checks.expect("info: a usage error", was == 2 and json.loads(text) == [] and "'Q'" in err)


def check_refused(checks, schedc):
    """What some combinations are refused for is said once, and the others are tested."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "refused.sched")
        with open(path, "w", encoding="utf-8") as file:
            file.write(REFUSED)
        code, text, _ = output(schedc, "test", "--quick", path)
        checks.expect("test: a report once", code == 1 and text.count("R5.unreleased") == 1)
        checks.expect("test: where", "cannot be instantiated, 3 times: k b -p BM=128, k c\n" in text)
        checks.expect("test: again", f"  again: schedc check {path} k --case b -p BM=128\n" in text)
        checks.expect("test: the others", ", 3 failed, 0 skipped (6 combinations" in text and ": 0 passed" not in text)
        result = json.loads(output(schedc, "test", "--quick", "--format", "json", path)[1])
        checks.expect("test: json", result["failed"] == 3 and [(f["times"], f["where"], f["diagnostic"]["code"])
                                    for f in result["failures"]] == [(3, "k b -p BM=128, k c", "R5.unreleased")])
        with open(path, "w", encoding="utf-8") as file:  # wrong everywhere: what runs, and what is swept, fails
            file.write(REFUSED.replace("= X[i,j]", "= 2 * X[i,j]"))
        text = output(schedc, "test", "--quick", path, "--case", "b", "-p", "BM=64", "--format", "json")[1]
        again = [failure["command"] for failure in json.loads(text)["failures"]]
        names = [re.findall(r"(?:-p|--set) (\w+)=", command) for command in again]
        checks.expect(f"test: again, each name once: {again[:1]}", names and all(sorted(n) == ["BM", "M"] for n in names))
        checks.expect("test: again, where", {"1", "10", "20"} <= set(re.findall(r"--set M=(\d+) -p BM=64", "\n".join(again))))
        with open(path, "w", encoding="utf-8") as file:
            file.write("nothing")
        code, text, _ = output(schedc, "test", "--format", "json", path)
        checks.expect("test: what cannot be read", code == 1 and [r["code"] for r in json.loads(text)] == ["S.token"])


def check_nothing_to_test(checks, schedc):
    """No such kernel or case is reported as by `check`; that there is no case at all is said with a remedy."""
    with tempfile.TemporaryDirectory() as folder:
        empty, bare, two = (os.path.join(folder, name) for name in ("empty.sched", "bare.sched", "two.sched"))
        for path, text in ((empty, ""), (bare, ELEMENTS), (two, ELEMENTS + ELEMENTS.replace("kernel k", "kernel l"))):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        copy = "schedules/copy.sched"
        for report, say, words in (("P.case", "its cases are: small", [copy, "--case", "nosuch"]),
                                   ("P.case", "'k' has no case 'small'", [bare, "--case", "small"]),
                                   ("P.unit", "the file has: copy", [copy, "nokernel"]),
                                   ("P.unit", "no kernel in this file", [empty])):
            code, text, err = output(schedc, "test", *words)
            checks.expect(f"test {words}: {code} {text}{err}", code == 1 and not text and f"error[{report}]" in err and say in err)
            code, text, err = output(schedc, "test", *words, "--format", "json")
            checks.expect(f"test {words}: json", code == 1 and [r["code"] for r in json.loads(text)] == [report] and not err)
        for path, say in ((bare, "'k' has no case to test"), (two, "no kernel of")):
            code, text, err = output(schedc, "test", path)
            checks.expect(f"test {path}: {code} {text}{err}", code == 1 and not text and say in err and "'case small {" in err)
        code, text, err = output(schedc, "test", two, "l", "--format", "json")
        checks.expect("test: no case: json", code == 1 and json.loads(text) == [] and "'l' has no case to test" in err)


def check_fmt(checks, schedc):
    with tempfile.TemporaryDirectory() as folder:
        path, other = os.path.join(folder, "a.sched"), os.path.join(folder, "b.sched")
        with open(os.path.join(ROOT, "schedules/copy.sched"), encoding="utf-8") as file:
            form = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(form.replace("  ring", "    ring"))
        checks.expect("fmt: writes", output(schedc, "fmt", path)[:2] == (0, form))
        checks.expect("fmt --check: names", output(schedc, "fmt", "--check", path)[:2] == (1, path + "\n"))
        checks.expect("fmt -o", output(schedc, "fmt", path, "-o", other)[0] == 0 and open(other).read() == form)
        for words in (("--check", "-i"), ("-i", "-o", other), ("--check", "-o", other), ("-o", other, path)):
            checks.expect(f"fmt {' '.join(words[:2])}: refused", output(schedc, "fmt", path, *words)[0] == 2)
        checks.expect("fmt: refused, nothing done", output(schedc, "fmt", "--check", path)[0] == 1)
        checks.expect("fmt -i", output(schedc, "fmt", "-i", path)[0] == 0 and open(path).read() == form)
        checks.expect("fmt --check: silent", output(schedc, "fmt", "--check", path)[:2] == (0, ""))
        checks.expect("check -o without --emit", output(schedc, "check", path, "-o", other)[0] == 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", required=True)
    schedc = os.path.abspath(parser.parse_args().schedc)
    with open(os.path.join(HERE, "sarif.schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft7Validator.check_schema(schema)
    checks = Checks()
    met = set()
    for folder in ("bad", "faults", "late", "pairs"):
        for name in sorted(f for f in os.listdir(os.path.join(HERE, folder)) if f.endswith(".sched")):
            met |= check_reports(checks, schedc, schema, f"tests/{folder}/{name}")
    checks.expect("reports of each rule between roles", BETWEEN_ROLES <= met)
    check_reports(checks, schedc, schema, "schedules/copy.sched")
    code, text, _ = output(schedc, "info", "--format", "json", "schedules/fa3_fwd.sched")
    info = json.loads(text)[0]
    checks.expect("info: name", code == 0 and info["name"] == "fa3_fwd")
    checks.expect("info: roles", [r["name"] for r in info["roles"]] == ["load", "math"])
    proofs = info["certificate"]["proofs"]
    checks.expect("info: the certificate", info["certificate"]["verdict"] == "proved for all trip counts"
                  and len(proofs) >= 9 and all(p["verdict"] == "proved for all trip counts" for p in proofs)
                  and all(0 < r["least_stages"] <= r["stages"] for r in info["certificate"]["rings"]))
    check_assumed(checks, schedc)
    check_info_fails(checks, schedc)
    checks.expect("info: shared memory", 0 < info["shared_memory_bytes"] <= 232448)
    code, text, _ = output(schedc, "run", "--format", "json", "schedules/copy.sched")
    result = json.loads(text)
    checks.expect("run", code == 0 and result["pass"] and result["outputs"][0]["tensor"] == "Y")
    code, text, _ = output(schedc, "test", "--quick", "--format", "json", "schedules/copy.sched")
    result = json.loads(text)
    checks.expect("test", code == 0 and result["failed"] == 0 and result["passed"] > 0 and result["failures"] == [])
    check_refused(checks, schedc)
    check_nothing_to_test(checks, schedc)
    check_fmt(checks, schedc)
    checks.expect("exit code of a usage error", output(schedc, "run")[0] == 2)
    checks.expect("exit code of a missing file", output(schedc, "check", "no such file")[0] == 3)
    checks.expect("exit code of --on cuda", output(schedc, "run", "--on", "cuda", "schedules/copy.sched")[0] == 3)
    print(f"{checks.passed} passed, {checks.failed} failed, 0 skipped")
    return checks.failed != 0


if __name__ == "__main__":
    sys.exit(main())
