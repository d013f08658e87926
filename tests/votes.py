#!/usr/bin/env python3
"""Which inputs make the stale maximum's warps correct a tile, and that a run depends on each part of a correction.

A copy of schedules/fa3_stale.sched counts for each row how often its warp did. `ramp-down` has to make nearly every warp
take every tile with care, so that next to none is computed again; `normal` none. Without a part of it only the latter is
still right.

  votes.py --schedc build/schedc
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SIZES = {"full": {"M": 128, "N": 2048, "BN": 176, "causal": "false"},
         "causal": {"M": 384, "N": 1536, "BN": 128, "causal": "true"}}

EXPECTED = {"corrected": {"normal": (0, 0), "spike": (0.3, 0.8), "ramp": (0.3, 0.8), "ramp-down": (0.95, 1)},
            "computed again": {"normal": (0, 0), "ramp-down": (0.001, 0.2)}}


def edited(text, *changes):
    for old, new in changes:
        assert text.count(old) == 1, f"schedules/fa3_stale.sched has changed: {old}"
        text = text.replace(old, new)
    return text


CORRECTION = "        vote any(not (r[i] <= g[i])) { correct(t) }\n"
AGAIN = """        vote any(not (r[i] <= 1e35)) {                   // f32 does not hold it
          s[i,j] = q[64*w + i, d] @ k[j,d]
          if causal { mask(t) }
          maximum();  weights(0, BN);  rescale()
        }
"""
# What a correction has, each a way to lose it: the kinds of input that are wrong then.
MUTANTS = {
    "the correction": ((CORRECTION, ""), ("spike", "ramp", "ramp-down")),
    "the rescaling of what came before a tile taken with care": (
        ("      vote any(a[i] < 1) { rescale() } ", "                                       "), ("ramp", "ramp-down")),
    "the tile computed again": ((AGAIN, ""), ("ramp-down",)),
    "the higher reference": (("m[i] + log2(r[i]) / c, m[i])", "m[i], m[i])"), ("spike",)),
}


def counting(text, what):
    """Counts for each row how often its warp did it."""
    place, again = {"corrected": (CORRECTION, CORRECTION.replace("correct(t) }", "correct(t);  n[i] = n[i] + 1 }")),
                    "computed again": (AGAIN, AGAIN.replace("rescale()\n", "rescale();  n[i] = n[i] + 1\n"))}[what]
    return edited(text,
                  ("  out L : f32[B, H, M]\n", "  out L, votes : f32[B, H, M]\n"),
                  ("    Z[b,h,i]   = ", "    votes[b,h,i] = 0 * X[b,h,i]\n    Z[b,h,i]   = "),
                  ("    reg g : f32[64] ", "    reg n : f32[64] = 0\n    reg g : f32[64] "),
                  (place, again),
                  ("    L[b, h, x*BM", "    votes[b, h, x*BM + 64*w + i] = n[i]\n    L[b, h, x*BM"))


def run(schedc, path, inputs, size, *more):
    """Which outputs are within tolerance."""
    command = [schedc, "run", "--on", "cpu", path, "--inputs", inputs, "--case", "paper", "--sample", "64",
               "--format", "json", *more]
    for name in ("BN", "causal"):
        command += ["-p", f"{name}={size[name]}"]
    for name, value in {"B": 1, "H": 1, "G": 1, "M": size["M"], "N": size["N"]}.items():
        command += ["--set", f"{name}={value}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=300, encoding="utf-8")
    return {o["tensor"]: o["pass"] for o in json.loads(done.stdout)["outputs"]}


def opportunities(size):
    """For each row, how many tiles its CTA goes through after the first one."""
    m, n, width = size["M"], size["N"], size["BN"]
    if size["causal"] == "false":
        return np.full(m, -(-n // width) - 1)
    return np.array([-(-((i // 128 + 1) * 128 + n - m) // width) - 1 for i in range(m)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "schedc"))
    schedc = parser.parse_args().schedc
    with open(os.path.join(ROOT, "schedules", "fa3_stale.sched"), encoding="utf-8") as file:
        text = file.read()
    passed = failed = 0

    def expect(what, holds):
        nonlocal passed, failed
        passed, failed = passed + bool(holds), failed + (not holds)
        if not holds:
            print("FAIL", what)

    with tempfile.TemporaryDirectory() as folder:
        counts, mutant, votes = (os.path.join(folder, name) for name in ("counting.sched", "mutant.sched", "votes.npy"))

        def write(path, content):
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)

        for what, kinds in EXPECTED.items():
            write(counts, counting(text, what))
            for name, size in SIZES.items():
                for inputs, (least, most) in kinds.items():
                    right = run(schedc, counts, inputs, size, "--out", f"votes={votes}")
                    share = np.load(votes).sum() / opportunities(size).sum()
                    print(f"{name:8} {inputs:10} {share:6.3f} of the tiles {what}")
                    expect(f"{name}, {inputs}: {least} to {most} of the tiles {what}, not {share:.3f}", least <= share <= most)
                    expect(f"{name}, {inputs}: right with counts", right.get("O") and right.get("L"))
        for what, (change, kinds) in MUTANTS.items():
            write(mutant, edited(text, change))
            for name, size in SIZES.items():
                for inputs in ("normal", *kinds):
                    right = run(schedc, mutant, inputs, size)
                    expect(f"{name}, {inputs}: without {what}", right and all(right.values()) == (inputs == "normal"))
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
