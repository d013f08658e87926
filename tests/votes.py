#!/usr/bin/env python3
"""Which inputs make the stale maximum's warps correct a tile, and that a run depends on each part of a correction.

Copies of schedules/fa3_stale.sched and fa3_fp8.sched count for each row how often its warp did, or took a hard tile. `ramp-down`
has to make nearly every tile hard, so that few are computed again. `ramp`, whose last keys are the largest, has to make them
hard from the start, so that none is corrected. Without a part of a correction, kinds of input that need it are wrong, and no
others.

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


class Stale:
    """f16: no tile of normal numbers is corrected."""
    kernel, case, type, outputs = "fa3_stale", "paper", "f16", {"O", "L"}
    sizes = {"full": {"M": 192, "N": 2048, "BN": 80, "causal": "false"},
             "causal": {"M": 384, "N": 1536, "BN": 128, "causal": "true"}}
    # The first tile has 4 keys, too few to tell.
    short = {"short": {"M": 192, "N": 2004, "BN": 80, "causal": "false"}}
    expected = {"corrected or hard": {"normal": (0, 0), "spike": (0.9, 1), "ramp": (0.9, 1), "ramp-down": (0.95, 1)},
                "corrected": {"ramp": (0, 0), "ramp-down": (0.03, 0.3)},
                "computed again": {"normal": (0, 0), "ramp-down": (0.001, 0.3)}}
    correction = "          vote any(not (r[i] <= most)) { correct(t) }    // NaN votes too\n"
    hard = "          weights(0, BN)\n"  # where a hard tile is taken
    rescaling = ("          rescale()\n        }\n        if D == 64", "        }\n        if D == 64")
    again = """      vote any(not (r[i] <= 1e35)) {                     // f32 does not hold it
        s[i,j] = q[64*w + i, d] @ k[j,d]
        left(t)
        maximum();  weights(0, BN);  rescale()
      }
"""
    counting = (("  out L : f32[B, H, M]\n", "  out L, votes : f32[B, H, M]\n"),
                ("    Z[b,h,i]   = ", "    votes[b,h,i] = 0 * X[b,h,i]\n    Z[b,h,i]   = "),
                ("    reg hard : f32[64], ", "    reg votes_of : f32[64] = 0\n    reg hard : f32[64], "),
                ("    L[b, h, x*BM", "    votes[b, h, x*BM + 64*w + i] = votes_of[i]\n    L[b, h, x*BM"))
    higher = "m[i] + log2(r[i]) / c, m[i])"
    # The kinds of input that are wrong without each part of a correction.
    wrong = {"the correction": ("spike", "ramp-down"),
             "the rescaling of what came before a hard tile": ("ramp-down",),
             "the tile computed again": ("ramp-down",),
             "the higher reference": ("spike",)}

    def change(self, part):
        """How that part is lost."""
        return {"the correction": (self.correction, ""),
                "the rescaling of what came before a hard tile": self.rescaling,
                "the tile computed again": (self.again, ""),
                "the higher reference": (self.higher, "m[i], m[i])")}[part]

    def part(self, text):
        """Of the schedule's file: what is copied."""
        return text


class Bf16(Stale):
    """P may be far above 1, so that a spike needs no correction."""
    type = "bf16"
    expected = {"corrected or hard": {"normal": (0, 0), "spike": (0, 0), "ramp": (0.9, 1), "ramp-down": (0.9, 1)},
                "corrected": {"ramp": (0, 0), "ramp-down": (0.03, 0.3)},
                "computed again": {"normal": (0, 0), "ramp-down": (0.001, 0.3)}}
    wrong = {"the correction": ("ramp-down",),
             "the rescaling of what came before a hard tile": ("ramp-down",),
             "the tile computed again": ("ramp-down",)}  # a higher reference only leaves room for O


class Fp8(Stale):
    """8 bits: the sums of a row of normal numbers soon pass 448. A first correction gives the row room, and most need no other."""
    kernel, case, type, outputs = "fa3_fp8", "long", "e4m3", {"O"}
    sizes = {"full": {"M": 128, "N": 2048, "BN": 128, "causal": "false"},
             "causal": {"M": 384, "N": 1536, "BN": 128, "causal": "true"}}
    expected = {"corrected": {"normal": (0.05, 0.4), "spike": (0.3, 1), "ramp": (0.3, 1), "ramp-down": (0.9, 1)},
                "computed again": {"normal": (0, 0), "ramp-down": (0.001, 0.2)}}
    correction = "        vote any(not (r[i] <= guard[i])) { correct(t) }\n"
    short = {}
    rescaling = ("      vote any(a[i] < 1) { rescale() } ", "                                       ")
    again = """        vote any(not (r[i] <= 1e35)) {                // f32 does not hold it
          s[i,j] = q[64*w + i, d] @ k[j,d]
          mask(t)
          maximum();  weights(0, BN);  rescale()
        }
"""
    counting = (("  out O : TO[B, M, H, D]\n", "  out O : TO[B, M, H, D]\n  out votes : f32[B, H, M]\n"),
                ("    Z : f32[b,h,i]    = ", "    votes[b,h,i] = 0 * X[b,h,i]\n    Z : f32[b,h,i]    = "),
                ("    reg guard : f32[64] ", "    reg votes_of : f32[64] = 0\n    reg guard : f32[64] "),
                ("    if BM == 192 {\n      acquire tile", "    votes[b, h, x*BM + 64*w + i] = votes_of[i]\n    if BM == 192 {\n      acquire tile"))
    higher = "m[i] + log2(most[i]) - 8 + above(all[i] / most[i]), m[i])"
    wrong = {**Stale.wrong, "the correction": ("normal", "spike", "ramp", "ramp-down"),
             "the higher reference": ("normal", "spike")}

    def part(self, text):
        return text[text.index("kernel fa3_fp8 {"):text.index("// From 16-bit tensors: quantized first")]


def edited(text, *changes):
    for old, new in changes:
        assert text.count(old) == 1, f"a schedule has changed: {old}"
        text = text.replace(old, new)
    return text


def counting(of, text, what):
    """Counts for each row how often its warp did it."""
    one = "votes_of[i] = votes_of[i] + 1"
    corrected = (of.correction, of.correction.replace(" }", f";  {one} }}", 1))
    places = {"corrected": [corrected],
              "corrected or hard": [corrected, (of.hard, of.hard.replace("\n", f";  {one}\n"))],
              "computed again": [(of.again, of.again.replace("rescale()\n", f"rescale();  {one}\n"))]}[what]
    return edited(text, *of.counting, *places)


def run(schedc, of, path, inputs, size, *more):
    """Which outputs are within tolerance."""
    command = [schedc, "run", "--on", "cpu", path, of.kernel, "--inputs", inputs, "--case", of.case, "--sample", "64",
               "--format", "json", *more]
    for name in ("BN", "causal"):
        command += ["-p", f"{name}={size[name]}"]
    if of.type == "bf16":
        command += ["-p", "T=bf16"]
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


class Tally:
    """What held, and what did not."""
    passed = failed = 0

    def expect(self, what, holds):
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)
        if not holds:
            print("FAIL", what)


def write(path, content):
    with open(path, "w", encoding="utf-8") as file:
        file.write(content)


def try_counts(schedc, of, text, folder, tally):
    path, votes = (os.path.join(folder, name) for name in ("counting.sched", "votes.npy"))
    for what, kinds in of.expected.items():
        write(path, counting(of, text, what))
        # (With a short first tile some are corrected before it is known that all are hard.)
        sizes = of.sizes if what == "corrected" else {**of.sizes, **of.short}
        for name, size in sizes.items():
            for inputs, (least, most) in kinds.items():
                right = run(schedc, of, path, inputs, size, "--out", f"votes={votes}")
                share = np.load(votes).sum() / opportunities(size).sum()
                print(f"{of.kernel:10} {of.type:5} {name:8} {inputs:10} {share:6.3f} of the tiles {what}")
                where = f"{of.kernel}, {of.type}, {name}, {inputs}"
                tally.expect(f"{where}: {least} to {most} of the tiles {what}, not {share:.3f}", least <= share <= most)
                tally.expect(f"{where}: right with counts", all(right.get(name) for name in of.outputs))


def try_mutants(schedc, of, text, folder, tally):
    path = os.path.join(folder, "mutant.sched")
    for what, kinds in of.wrong.items():
        write(path, edited(text, of.change(what)))
        for name, size in of.sizes.items():
            for inputs in sorted({"normal", *kinds}):
                right = run(schedc, of, path, inputs, size)
                tally.expect(f"{of.kernel}, {of.type}, {name}, {inputs}: without {what}",
                             right and all(right.values()) == (inputs not in kinds))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "schedc"))
    schedc, tally = parser.parse_args().schedc, Tally()
    for of in (Stale(), Bf16(), Fp8()):
        with open(os.path.join(ROOT, "schedules", of.kernel + ".sched"), encoding="utf-8") as file:
            text = of.part(file.read())
        with tempfile.TemporaryDirectory() as folder:
            try_counts(schedc, of, text, folder, tally)
            try_mutants(schedc, of, text, folder, tally)
    print(f"{tally.passed} passed, {tally.failed} failed, 0 skipped")
    return tally.failed > 0


if __name__ == "__main__":
    sys.exit(main())
