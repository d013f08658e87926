#!/usr/bin/env python3
"""What attention schedules must do with NaN and infinity, and what quotients give.

A query or key that is NaN makes NaN of the rows that see it and of no others; what lies past a sequence's
end, and what is masked by a key's position, never shows. The specification says the same, so a run must
match it, NaN for NaN; beyond that the rows are counted here. Quotients by a value of a row have the same bits
where the schedule is interpreted and where its emitted code runs on the model.

  pinned.py --schedc build/schedc
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np

FIXED = [f"schedules/{name}.sched" for name in ("fa3_alg1", "fa3_fwd", "fa3_stage3", "fa3_stale", "gqa_fwd_2wg")]
POLICIES = ["early", "late", "random"]
QUOTIENTS = """kernel quotients {
  in  X : f32[M, 64], V : f32[M]
  out Y : f32[M, 64], S : f32[M]
  spec { Y[i,j] = X[i,j] / V[i]; S[i] = max(j) X[i,j] / V[i] }
  grid (x : cdiv(M, 64))
  role all : 1 warpgroup, 128 regs {
    reg s : f32[64, 64], v : f32[64], t : f32[64]
    s[i,j] = X[x*64 + i, j]
    v[i] = V[x*64 + i]
    t[i] = max(j) s[i,j] / v[i]
    Y[x*64 + i, j] = s[i,j] / v[i]
    S[x*64 + i] = t[i]
  }
}
"""


class Bench:
    def __init__(self, schedc, root, folder):
        self.schedc, self.root, self.folder = schedc, root, folder
        self.passed, self.failed = 0, 0

    def run(self, path, what, options, inputs, count_nan, outputs=("O", "L")):
        """Runs a schedule on the given arrays. count_nan(O, L): what is wrong with the outputs, or None."""
        command = [self.schedc, "run", os.path.join(self.root, path)] + options
        for tensor, array in inputs.items():
            file = os.path.join(self.folder, tensor + ".npy")
            np.save(file, array)
            command += ["--in", f"{tensor}={file}"]
        for tensor in outputs:
            command += ["--out", f"{tensor}=" + os.path.join(self.folder, tensor + ".npy")]
        for policy in POLICIES:
            done = subprocess.run(command + ["--policy", policy], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  encoding="utf-8", timeout=120)
            wrong = None if done.returncode == 0 else done.stdout
            if not wrong:
                wrong = count_nan(*(np.load(os.path.join(self.folder, t + ".npy")) for t in outputs))
            if wrong:
                self.failed += 1
                print(f"{path}: {what} ({policy}): {wrong}")
            else:
                self.passed += 1


def rows_with_nan(output):
    """Of O [B, M, H, D]: which rows (M) hold NaN; mixed rows are an error."""
    bad = np.isnan(output)
    return set(np.argwhere(bad.any(axis=(0, 2, 3))).ravel().tolist())


def expect_rows(rows):
    def check(o, l):
        of_o, of_l = rows_with_nan(o), set(np.argwhere(np.isnan(l).any(axis=(0, 1))).ravel().tolist())
        if of_o != rows or of_l != rows:
            return f"NaN in rows {sorted(of_o ^ rows)[:8]} of O and {sorted(of_l ^ rows)[:8]} of L is not as expected"
        return None
    return check


def dense(bench, path):
    rng = np.random.default_rng(1)
    m, n, d = 70, 300, 64
    base = {"Q": (1, m, 1, d), "K": (1, n, 1, d), "V": (1, n, 1, d)}
    fresh = lambda: {k: rng.standard_normal(s).astype(np.float16) for k, s in base.items()}
    plain, causal = ["-p", "D=64"], ["-p", "D=64", "-p", "causal=true"]

    x = fresh()
    x["Q"][0, 5, 0, 3] = np.nan
    bench.run(path, "a query is NaN", plain, x, expect_rows({5}))
    x = fresh()
    x["K"][0, 7, 0, 3] = np.nan
    bench.run(path, "a key is NaN", plain, x, expect_rows(set(range(m))))
    x = fresh()
    x["K"][0, 260, 0, 3] = np.nan
    bench.run(path, "a masked key is NaN", causal, x, expect_rows(set(range(260 - (n - m), m))))
    x = fresh()
    x["V"][0, 9, 0, :] = np.nan
    bench.run(path, "a value is NaN", plain, x,
              lambda o, l: None if np.isnan(o).all() and not np.isnan(l).any() else "NaN is not as expected")
    # More queries than keys: the first rows see nothing.
    x = {k: v[:, : 40 if k != "Q" else m] for k, v in fresh().items()}
    bench.run(path, "rows that see no key", causal, x,
              lambda o, l: None if (o[0, : m - 40] == 0).all() and np.isneginf(l[0, 0, : m - 40]).all()
              and np.isfinite(l[0, 0, m - 40:]).all() else "O is not 0 or L is not -inf")


def ragged(bench):
    """Rows of the other sequences, which tiles hold as well where a sequence ends within them, may be anything."""
    rng = np.random.default_rng(2)
    cq, ck = np.array([0, 30, 170, 190], np.int32), np.array([0, 140, 360, 400], np.int32)
    for causal in ("false", "true"):
        for b in range(3):
            own = slice(cq[b], cq[b + 1])
            x = {"cq": cq, "ck": ck}
            for tensor, ends in ("Q", cq), ("K", ck), ("V", ck):
                x[tensor] = np.full((ends[-1], 1, 64), np.nan, np.float16)
                x[tensor][3::7] = np.inf
                x[tensor][ends[b] : ends[b + 1]] = rng.standard_normal((ends[b + 1] - ends[b], 1, 64))

            def check(o, l):
                if np.isnan(o[own]).any() or np.isnan(l[:, own]).any():
                    return "NaN of the other sequences shows"
                return None if np.isnan(np.delete(o, own, 0)).all() else "NaN is lost"
            bench.run("schedules/fa_varlen.sched", f"all but sequence {b} is NaN, causal = {causal}",
                      ["-p", "D=64", "-p", f"causal={causal}", "--set", "B=3", "--set", "maxq=140"], x, check)


def ragged_gradients(bench):
    """The same of gradients: those of a sequence depend on no other's rows."""
    rng = np.random.default_rng(4)
    cq, ck = np.array([0, 30, 110, 130], np.int32), np.array([0, 70, 210, 240], np.int32)
    for causal, b in (("false", 0), ("true", 1), ("false", 1), ("true", 2)):
        x = {"cq": cq, "ck": ck}
        for tensor, ends in ("Q", cq), ("dO", cq), ("K", ck), ("V", ck):
            x[tensor] = np.full((ends[-1], 1, 64), np.nan, np.float16)
            x[tensor][3::7] = np.inf
            x[tensor][ends[b] : ends[b + 1]] = rng.standard_normal((ends[b + 1] - ends[b], 1, 64))

        def check(*gradients):
            for g, ends in zip(gradients, (cq, ck, ck)):
                if np.isnan(g[ends[b] : ends[b + 1]]).any():
                    return "NaN of the other sequences shows"
                if not np.isnan(np.delete(g, slice(ends[b], ends[b + 1]), 0)).all():
                    return "NaN is lost"
            return None
        bench.run("schedules/fa_varlen_bwd.sched", f"gradients where all but sequence {b} is NaN, causal = {causal}",
                  ["-p", "D=64", "-p", f"causal={causal}", "--set", "B=3", "--set", "maxq=80", "--set", "maxk=140"], x, check,
                  ("dQ", "dK", "dV"))


def behind_the_end(bench):
    """What lies behind `len` in a cache is what was there before."""
    rng = np.random.default_rng(3)
    length = np.array([100, 0, 7, 33, 64, 80, 120], np.int32)
    x = {"Q": rng.standard_normal((len(length), 20, 576)), "KV": rng.standard_normal((len(length), 120, 576)), "len": length}
    for b, n in enumerate(length):
        x["KV"][b, n:] = np.nan
        x["KV"][b, n + 1 :: 5] = np.inf
    x = {name: array if name == "len" else array.astype(np.float16) for name, array in x.items()}
    bench.run("tests/corpus/mla_decode.sched", "the cache behind the end is NaN", ["-p", "T=f16"], x,
              lambda o, l: "NaN behind the end shows" if np.isnan(o).any() or np.isnan(l).any() else None)


def quotients(bench):
    rng = np.random.default_rng(5)
    x = {"X": rng.standard_normal((128, 64)).astype(np.float32), "V": (10.0 ** rng.uniform(-30, 30, 128)).astype(np.float32)}
    x["V"][:5] = 1e-40, 0, np.inf, np.nan, -1e-39
    x["X"][:5, ::3] = 0
    path = os.path.join(bench.folder, "quotients.sched")
    with open(path, "w", encoding="utf-8") as file:
        file.write(QUOTIENTS)
    for tensor, array in x.items():
        np.save(os.path.join(bench.folder, tensor + ".npy"), array)
    found = {}
    for on in "cpu", "model":
        command = [bench.schedc, "run", path, "--on", on]
        for way, tensor in ("in", "X"), ("in", "V"), ("out", "Y"), ("out", "S"):
            command += [f"--{way}", f"{tensor}=" + os.path.join(bench.folder, tensor + (".npy" if way == "in" else f"_{on}.npy"))]
        # Not right where the inverse is infinite and X is 0, as the reference says.
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
        found[on] = [np.load(os.path.join(bench.folder, f"{tensor}_{on}.npy")) for tensor in "YS"]
    same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found["cpu"], found["model"]))
    infinite = np.isnan(found["cpu"][0][0, ::3]).all() and np.isinf(found["cpu"][0][0, 1::3]).all()
    for what, holds in ("quotients: the same bits", same), ("quotients: 0 times an infinite inverse", infinite):
        bench.passed += bool(holds)
        bench.failed += not holds
        if not holds:
            print(what, found["cpu"][0][:5, :4], found["model"][0][:5, :4])


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", default=os.path.join(root, "build", "schedc"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args.schedc, root, folder)
        for path in FIXED:
            dense(bench, path)
        ragged(bench)
        ragged_gradients(bench)
        behind_the_end(bench)
        quotients(bench)
    print(f"{bench.passed} passed, {bench.failed} failed, 0 skipped")
    return 1 if bench.failed or not bench.passed else 0


if __name__ == "__main__":
    sys.exit(main())
