#!/usr/bin/env python3
"""Verdicts: right, wrong, and that a comparison proves nothing; and that an overflow is told as one.

Copies of tests/corpus/ssd.sched, edited, and of small schedules that stand here.

  verdicts.py --schedc build/schedc
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LONG = ["--set", "G=2", "--set", "N=1024"]
RIGHT, WRONG = "= where(t*64 + j <= x*64 + i, exp(", "= where(t*64 + j <= x*64 + i, 0.8 * exp("

# h overflows where X is beyond 16. The specification needs it for nothing: Y is 0.
OVERFLOW = """
kernel up {{
  in  X : f32[64, 64]
  out h : f16[64, 64]
  role all : 1 warpgroup {{ h[i,j] = 4000 * X[i,j] }}
}}
kernel down {{
  in  h : f16[64, 64], X : f32[64, 64]
  out Y : f32[64, 64]
  role all : 1 warpgroup {{ Y[i,j] = h[i,j] - 4000 * X[i,j] + 0 * h[i,j] }}
}}
sequence both {{
  workspace h : f16[64, 64]
  up
  down
  spec {{
    {named}
  }}
  case small {{ }}
}}
"""
NAMED = "H : f16[i,j] = 4000 * X[i,j]\n    Y[i,j] = H[i,j] - 4000 * X[i,j] + 0 * H[i,j]"
UNNAMED = "Y[i,j] = 4000 * X[i,j] - 4000 * X[i,j]"
# The second half is never written.
UNWRITTEN = """
kernel half {
  in  X : f32[64, 64]
  out Y : f32[64, 64]
  spec { Y[i,j] = X[i,j] }
  case small { }
  role all : 1 warpgroup {
    reg s : f32[64, 64]
    s[i,j] = X[i,j]
    Y[i,j] = s[i,j] if j < 32
  }
}
"""
# P is exact in f16: the bounds that rounding it gives are those of f32 sums in one order, and the kernel has another.
EXACT = """
kernel halves {
  in  A : f16[M, K], B : f16[N, K]
  out Y : f32[M, N]
  spec {
    P[i,k] = 0.5 * A[i,k]
    Y[i,j] = sum(k) P[i,k] * B[j,k]
  }
  case small { M = 384, N = 256, K = 320 }

  grid (x : cdiv(M, 64), y : cdiv(N, 64))
  ring r : { a : f16[64, 64], b : f16[64, 64] } * 2
  role load : 1 warp, 40 regs {
    for t in 0 .. cdiv(K, 64) { acquire r;  r.a <- A[x*64.., t*64..];  r.b <- B[y*64.., t*64..];  commit r }
  }
  role math : 1 warpgroup, 232 regs {
    reg c : f32[64, 64] = 0, p : f16[64, 64]
    for t in 0 .. cdiv(K, 64) {
      wait r
      p[i,k] = 0.5 * r.a[i,k]
      async c[i,j] += p[i,k] @ r.b[j,k]
      wait c
      release r
    }
    Y[x*64 + i, y*64 + j] = c[i,j]
  }
}
"""


class Checks:
    def __init__(self, schedc, folder):
        self.schedc, self.folder, self.passed, self.failed = schedc, folder, 0, 0

    def expect(self, what, holds, said=""):
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)
        if not holds:
            print("FAIL", what, said, sep="\n")

    def call(self, command, text, *more):
        path = os.path.join(self.folder, "a.sched")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run([self.schedc, command, "--on", "cpu", path, *more], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=120, encoding="utf-8")
        return done.returncode, done.stdout

    def run(self, text, *more):
        """(exit code, what `run` says, its output as JSON)."""
        code, said = self.call("run", text, *more)
        again, document = self.call("run", text, *more, "--format", "json")
        self.expect("the same exit code with JSON", code == again)
        return code, said, json.loads(document)


def edited(text, *changes):
    for old, new in changes:
        assert text.count(old) == 1, f"tests/corpus/ssd.sched has changed: {old}"
        text = text.replace(old, new)
    return text


def unproven(checks, ssd):
    untyped = ("S : f32[g,i] = ", "S[g,i] = ")
    code, said, got = checks.run(ssd, *LONG)
    y = got["outputs"][0]
    checks.expect("typed: right", code == 0 and said.endswith("\nPASS\n") and got["pass"] and y["pass"], said)
    checks.expect("typed: tight", y["looseness"] < 0.01 and y["max_allowed"] < 1, str(y))
    code, said, got = checks.run(edited(ssd, (RIGHT, WRONG)), *LONG)
    checks.expect("typed: wrong weights", code == 1 and said.endswith("\nFAIL\n") and not got["pass"], said)
    for what, changes in (("right", [untyped]), ("wrong weights", [untyped, (RIGHT, WRONG)])):
        code, said, got = checks.run(edited(ssd, *changes), *LONG)
        y = got["outputs"][0]
        checks.expect(f"untyped: {what}", code == 1 and said.endswith("\nUNPROVEN\n") and "proves nothing" in said
                      and y["unproven"] and not y["pass"] and not got["pass"] and y["max_allowed"] > 100, said)


def tested(checks, ssd):
    """`test` fails where normal inputs, or the first that are asked for, prove nothing; others are counted."""
    with open(os.path.join(ROOT, "schedules/fa3_bwd_ordered.sched"), encoding="utf-8") as file:
        ordered = file.read()
    untyped = edited(ssd, ("S : f32[g,i] = ", "S[g,i] = "), ("N in { 4, 64, 256 } }", "N = 1024 }"))
    code, said = checks.call("test", untyped, "ssd", "--quick", "--inputs", "normal,spike")
    checks.expect("test: normal inputs prove nothing", code == 1 and "FAIL Y: UNPROVEN, max error" in said, said)
    code, said = checks.call("test", ordered, "fa3_bwd_ordered", "--quick", "--inputs", "normal,ramp")
    checks.expect("test: others are counted", code == 0 and " 0 failed" in said and "\n  unproven: " in said, said)
    code, said = checks.call("test", ordered, "fa3_bwd_ordered", "--quick", "--inputs", "ramp", "--format", "json")
    got = json.loads(said)
    checks.expect("test: the first that are asked for", code == 1 and got["failed"] > 0 and got["unproven"] == 0, said)


def overflows(checks):
    code, said, got = checks.run(OVERFLOW.format(named=NAMED), "--inputs", "large")
    y = got["outputs"][0]
    checks.expect("named: it overflows", code == 1 and "elements are infinite or NaN" in said and "beyond its type" in said
                  and "never written" not in said and y["overflowed"] > 0 and y["unwritten"] == 0, said)
    code, said, got = checks.run(OVERFLOW.format(named=UNNAMED), "--inputs", "large")
    y = got["outputs"][0]
    checks.expect("not named: it may", code == 1 and "read too early, or made of an f16 that overflowed" in said
                  and y["overflowed"] == 0 and y["unwritten"] > 0, said)
    code, said, got = checks.run(UNWRITTEN)
    checks.expect("what is not written", code == 1 and "2048 elements are NaN" in said and "overflow" not in said, said)


def wide_outputs(checks, ssd):
    """An f32 output of bf16 weights is held to what rounding these costs."""
    for what, change, right in (("right", [], True), ("wrong weights", [(RIGHT, WRONG)], False)):
        code, said, got = checks.run(edited(ssd, *change), *LONG, "-p", "U=f32")
        y = got["outputs"][0]
        checks.expect(f"f32 of bf16: {what}", (code == 0) == right and y["max_allowed"] > 0.1, said)


def exact_names(checks):
    code, said, _ = checks.run(EXACT)
    checks.expect("f32 of what is exact in f16", code == 0, said)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "schedc"))
    schedc = os.path.abspath(parser.parse_args().schedc)
    with open(os.path.join(ROOT, "tests", "corpus", "ssd.sched"), encoding="utf-8") as file:
        ssd = file.read()
    with tempfile.TemporaryDirectory() as folder:
        checks = Checks(schedc, folder)
        unproven(checks, ssd)
        tested(checks, ssd)
        overflows(checks)
        wide_outputs(checks, ssd)
        exact_names(checks)
    print(f"{checks.passed} passed, {checks.failed} failed, 0 skipped")
    return checks.failed > 0


if __name__ == "__main__":
    sys.exit(main())
