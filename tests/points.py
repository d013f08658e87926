#!/usr/bin/env python3
"""`schedc check --all-params` and `--all-cases`, and what `schedc info` says of params.

The counts are held against one `schedc check -p …` a point. A program that is rejected at some points is named by one of
them; where no point is legal the reports say why. The params that bench/points.json gives are points of the spaces.

  points.py --schedc build/schedc
"""
import argparse
import collections
import itertools
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
checks = collections.Counter()

# Wrong where B is 3; refused where A is 2 (a requirement) or B is 5 (it does not fit). C changes nothing.
SCHEDULE = """kernel some {
  param W = 32 in { 32, 64 }
  param A = 2 in { 1 .. 4 }, B = 1 in { 1 .. 6 }, C = 0 in { 0, 1 }
  in  X : f32[M, W]
  out Y : f32[M, W]
  require A != 2
  grid (x : cdiv(M, 64))
  ring r : f32[64, W] * (B == 5 ? 40 : A)
  role load : 1 warp {
    for t in 0 .. B { r <- X[x*64..] }
  }
  role all : 1 warpgroup, 200 regs {
    reg v : f32[64, W] = 0
    for t in 0 .. B == 3 ? B + 1 : B {
      wait r
      v[i,j] = v[i,j] + r[i,j]
      release r
    }
    Y[x*64 + i, j] = v[i,j]
  }
}
"""


def expect(title, good, *more):
    checks[bool(good)] += 1
    if not good:
        print("FAIL", title, *more)


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, encoding="utf-8")
    return done.returncode, done.stdout, done.stderr


def all_params(schedc, *args):
    code, out, _ = run(schedc, "check", "--all-params", "--format", "json", *args)
    return code, json.loads(out)


def params_of(schedc, path, *args):
    code, out, err = run(schedc, "info", path, *args, "--format", "json")
    expect(f"info {path}", code == 0, err)
    return {p["name"]: p for p in json.loads(out)[0]["parameters"]}


def hold_counts(schedc, path):
    """Each point by itself: is it refused, and with which code?"""
    params = params_of(schedc, path)
    names = [name for name in params if params[name]["domain"]]
    refused, legal = collections.Counter(), 0
    for values in itertools.product(*(params[name]["domain"] for name in names)):
        words = [word for name, v in zip(names, values)
                 for word in ("-p", f"{name}={v}")]
        code, out, _ = run(schedc, "check", path, *words, "--format", "json")
        legal += code == 0
        if code:
            refused[json.loads(out)[0]["code"]] += 1
    code, report = all_params(schedc, path)
    unit = report["units"][-1]
    expect(f"{path}: exit code", code == 0, code)
    expect(f"{path}: legal points", unit["legal"] == legal and unit["points"] == legal + sum(refused.values()), unit)
    expect(f"{path}: refusals by code", unit["refused"] == dict(refused), unit["refused"], refused)
    expect(f"{path}: each program has a verdict", sum(unit["verdicts"].values()) == unit["programs"], unit)


def hold_wrong(schedc, path):
    code, report = all_params(schedc, path)
    unit, = report["units"]
    legal = 2 * 2 * 4 * 2  # A is 1 or 3, B is not 5; of these B = 3 is rejected only when all roles are looked at
    expect("points", unit["points"] == 2 * 3 * 5 * 2 and unit["legal"] == legal, unit)
    expect("a program is counted once", unit["programs"] == legal / 2, unit)
    expect("refused", unit["refused"] == {"P.require": 20, "R8.smem": 8}, unit["refused"])
    expect("verdicts", sorted(unit["verdicts"].values()) == [4, 12] and code == 1, unit["verdicts"], code)
    expect("one report for all points", [d["code"] for d in report["diagnostics"]] == ["R5.agree"], report["diagnostics"])
    code, out, err = run(schedc, "check", "--all-params", path)
    expect("text", "some: 60 points, 32 legal, 16 programs" in out and code == 1, out)
    expect("the point is named", "rejected: -p W=32 -p A=1 -p B=3 -p C=0\n" in out, out)
    expect("the code is explained", "8 points refused: R8.smem, the rings do not fit" in out, out)
    expect("the report is there", "error[R5.agree]" in err, err)
    code, report = all_params(schedc, path, "-p", "B=4", "-p", "W=64")
    expect("what is given is fixed", report["units"][0]["points"] == 6 and code == 0, report)
    code, out, err = run(schedc, "check", "--all-params", path, "-p", "A=2")
    expect("no point is legal", code == 1 and "20 points, 0 legal" in out and "error[P.require]" in err, out, err)
    expect("one point has no stage", run(schedc, "check", "--all-params", "--emit=place", path)[0] == 2)


def hold_cases(schedc, path):
    """Of three cases one says by a choice that B is 3, and one by another that A is 2."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(SCHEDULE.replace("A = 2 in", "A = 1 in").replace("  grid", """  case right { M = 5 }
  case wrong { B in { 1, 3 }, M = 5 }
  case unmet { A in { 2, 1 }, M = 5 }
  grid"""))
    code, out, err = run(schedc, "check", path)
    expect("the defaults are right", code == 0 and out == "some: proved for all trip counts\n", out, err)
    code, out, err = run(schedc, "check", "--all-cases", path)
    expect("cases", "some: 6 points of the defaults and 3 cases, 5 legal, 2 programs\n" in out and code == 1, out)
    expect("the case is named", "  rejected: --case wrong -p B=3\n" in out and "error[R5.agree]" in err, out, err)
    code, out, err = run(schedc, "check", "--all-cases", path, "-p", "B=2")
    expect("what is given is fixed", code == 0 and "5 points of" in out and "4 legal, 1 programs" in out, out, err)
    code, out, err = run(schedc, "check", "--all-cases", path, "-p", "B=5")
    expect("what is refused is reported", code == 1 and err.count("error[R8.smem]") == 1, out, err)
    expect("… and named", "  R8.smem: the defaults\n" in out and "  refused: --case wrong\n" in out, out)
    code, out, err = run(schedc, "check", "--all-cases", path, "-p", "A=2")
    expect("defaults that meet no requirement", code == 1 and err.count("error[P.require]") == 1, out, err)
    unit, = json.loads(run(schedc, "check", "--all-cases", "--format", "json", path)[1])["units"]
    expect("JSON", unit["cases"] == 3 and unit["points"] == 6 and unit["verdicts"]["rejected"] == 1, unit)
    for more in (["--all-params"], ["--case", "right"], ["--emit=place"]):
        expect(f"not with {more[0]}", run(schedc, "check", "--all-cases", path, *more)[0] == 2)


def hold_sequence(schedc, path):
    """A kernel that is wrong, alone and in a sequence, where its report says a param that the first kernel gives it."""
    first = SCHEDULE.replace("A = 2 in", "A = 1 in")
    some = first.replace("B == 3", "B == 1")
    with open(path, "w", encoding="utf-8") as file:
        file.write(first.replace("kernel some", "kernel first").replace("Y", "Z") + some + "sequence all {\n  first\n  some\n}\n")
    code, _, err = run(schedc, "check", path)
    expect("one report for kernel and sequence", code == 1 and err.count("error[") == 1, err)


def hold_info(schedc, path):
    kind = {name: p["kind"] for name, p in params_of(schedc, path, "-p", "A=1").items()}
    expect("kinds", kind == {"W": "problem", "A": "tuning", "B": "tuning", "C": "tuning"}, kind)
    text = run(schedc, "info", path, "-p", "A=1")[1]
    expect("kinds in words", "  W          problem   32  in { 32, 64 }\n" in text, text)
    for unit, want in (("fa3_bwd", "tuning"), ("backward", "problem")):  # of the sequence dQa is a workspace
        params = params_of(schedc, os.path.join(ROOT, "schedules/fa3_bwd.sched"), unit)
        expect(f"BM of {unit}", params["BM"]["kind"] == want, params["BM"])


def hold_bench(schedc):
    """What bench/points.json chooses by hand is a point."""
    with open(os.path.join(ROOT, "bench/points.json"), encoding="utf-8") as file:
        points = [p for part in json.load(file).values() if isinstance(part, list) for p in part if "schedule" in p]
    expect("points of the bench", points)
    for point in points:
        params = params_of(schedc, os.path.join(ROOT, point["schedule"]))
        for name, value in {**point["params"], **point.get("tuning", {})}.items():
            domain, kind = params[name]["domain"], params[name]["kind"]
            expect(f"{point['name']}: {name}", str(value).lower() in domain or (kind == "problem" and not domain), domain)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "schedc"))
    schedc = os.path.abspath(parser.parse_args().schedc)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "some.sched")
        with open(path, "w", encoding="utf-8") as file:
            file.write(SCHEDULE)
        hold_wrong(schedc, path)
        hold_info(schedc, path)
        hold_cases(schedc, path)
        hold_sequence(schedc, path)
    hold_counts(schedc, os.path.join(ROOT, "schedules/copy.sched"))
    hold_counts(schedc, os.path.join(ROOT, "schedules/gemm_roles.sched"))
    hold_bench(schedc)
    print(f"{checks[True]} passed, {checks[False]} failed, 0 skipped")
    return 1 if checks[False] else 0


if __name__ == "__main__":
    sys.exit(main())
