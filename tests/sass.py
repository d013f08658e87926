#!/usr/bin/env python3
"""Does the machine code overlap what the schedule overlaps?

FlashAttention-3's paper (arXiv 2407.08608, section 3.2 and appendix B.2) reads the SASS of its main loop, because a
compiler may undo the pipeline that the source describes. What is claimed here of fa3_fwd's main loop, and read from
`schedc build --report sass`:

  issue     S = Q K' of a tile and O += P V of the tile before are issued in this order, each behind a fence, with no
            wait for products between them, and no exponential stands before both are issued
  wait      then S is waited for, and P V may stay in flight
  overlap   then stand exponentials, all of those that the schedule puts there, beside P V alone
  end       then P V is waited for, and behind that, with nothing in flight, stand the others and all conversions of P
            (whose registers P V reads)
  order     no product or wait stands in another order than the schedule's, none is added or lost, nothing is spilled

Of fa3_alg1, whose warpgroups do not overlap by themselves, the same claims do not hold: never are two products in
flight, and no exponential stands beside one. The claims are broken likewise by copies of fa3_fwd that wait at once.

  sass.py --schedc build/schedc
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FWD = os.path.join(ROOT, "schedules/fa3_fwd.sched")
MISSING = 3  # exit code: the machine lacks something, or it does not work
CLAIMS = ("issue", "wait", "overlap", "end", "order")
# Kernels in whose loops ptxas knows what is the same in all threads of a warp.
UNIFORM = (("fa3_fwd", ()), ("fa3_stale", ()), ("fa3_stale", ("D=64",)), ("fa3_stale", ("D=256", "causal=true")), ("gemm_pingpong", ()))
# One wait too early: for S before P V is issued; for P V as soon as it is issued.
AT_ONCE = {
    "S is waited for at once": (
        ("        wait v                                   // 10\n", "        wait s\n        wait v\n"),
        ("        wait s;  release k                       // 12, 15\n", "        release k\n")),
    "P V is waited for at once": (
        ("        wait s;  release k                       // 12, 15\n", "        wait s, o;  release k, v\n"),
        ("        wait o;  release v                       // 14, 15\n        if early < BN", "        if early < BN")),
}
# What must be broken, and what may not be.
BROKEN = {"S is waited for at once": {"issue", "wait"}, "P V is waited for at once": {"wait", "overlap", "end"}}
# Of 128 threads each has 32 of the 64 columns' exponentials that `early` asks for, and two rows' rescaling.
EARLY = 34


def kernel_of(schedc, path, *options):
    """The report on a schedule's kernel; None: the machine lacks something."""
    done = subprocess.run([schedc, "build", "--report", "sass", "--format", "json", *options, path], cwd=ROOT,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, encoding="utf-8")
    if done.returncode == MISSING and "missing" in done.stdout:
        return None
    if done.returncode:
        sys.exit(f"{path}: {done.stdout}{done.stderr}")
    kernel, = json.loads(done.stdout)["sass"]
    return kernel


def report(schedc, path, *options):
    """The main loop: the one that has both products. Also the seconds, and the report on the whole kernel."""
    start = time.time()
    kernel = kernel_of(schedc, path, *options)
    if not kernel:
        return None
    loop, = [at for at in kernel["loops"] if at["kind"] == "loop" and at["role"] == "math"]
    return loop, time.time() - start, kernel


def uniform_moves(schedc, name, params):
    """In the loops of a kernel that have products: those that stand beside products in flight. (A block that few warps run may
    have others.)"""
    options = [word for param in params for word in ("-p", param)]
    kernel = kernel_of(schedc, f"schedules/{name}.sched", *options)
    loops = [at for at in kernel["loops"] if at["kind"] == "loop" and any(row["kind"] == "product" for row in at["rows"])]
    return [at["beside_products"]["uniform_moves"] for at in loops]


def places(rows, kind, statement=""):
    return [i for i, row in enumerate(rows) if row["kind"] == kind and row["statement"].startswith(statement)]


def total(rows, what):
    return sum(row[what] for row in rows)


def broken(loop):
    """Which of the claims do not hold of a loop."""
    rows = loop["rows"]
    s, = places(rows, "product", "async s")
    o, = places(rows, "product", "async o")
    waits = places(rows, "wait_group")
    first = next((i for i in waits if i > s), len(rows) - 1)  # wait for S
    last = next((i for i in waits if i > max(first, o)), len(rows) - 1)  # wait for P V
    beside, after = rows[first + 1:last], rows[last + 1:]
    holds = {
        "issue": s < o < first and rows[o]["in_flight"] == [rows[s]["line"]]
                 and rows[s]["wgmma_fence"] and rows[o]["wgmma_fence"] and total(rows[:o + 1], "exponentials") == 0,
        "wait": o < first and rows[first].get("may_stay") == 1
                and rows[first]["in_flight"] == [rows[s]["line"], rows[o]["line"]],
        "overlap": total(beside, "exponentials") >= EARLY
                   and all(row["in_flight"] == [rows[o]["line"]] for row in beside),
        "end": rows[last].get("may_stay") == 0 and rows[last]["in_flight"] == [rows[o]["line"]]
               and total(after, "exponentials") > 0 and total(after, "conversions") == loop["all"]["conversions"] > 0
               and loop["beside_products"]["conversions"] == 0 and not any(row["in_flight"] for row in after),
        "order": not [m for m in loop["moved"] if m["kind"] in ("order", "extra", "absent")]
                 and not [m for m in loop["moved"] if m.get("row") in (s, o, first, last)] and loop["all"]["spills"] == 0,
    }
    return {claim for claim in CLAIMS if not holds[claim]}


def edited(folder, name, edits):
    with open(FWD, encoding="utf-8") as file:
        text = file.read()
    for old, new in edits:
        head, loop = text.split("      for t in reversed 0 .. last - 1 {          //  7\n")
        assert loop.count(old) == 1, (name, old)
        text = head + "      for t in reversed 0 .. last - 1 {          //  7\n" + loop.replace(old, new)
    path = os.path.join(folder, "fa3_fwd.sched")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--schedc", default="build/release/schedc")
    schedc = os.path.abspath(parser.parse_args().schedc)
    passed = failed = 0

    def expect(what, holds):
        nonlocal passed, failed
        passed, failed = passed + bool(holds), failed + (not holds)
        if not holds:
            print("FAIL", what)

    of_fwd = report(schedc, FWD)
    if not of_fwd:
        print("no NVRTC or no nvdisasm\n0 passed, 0 failed, 1 skipped")
        return 0
    loop, seconds, kernel = of_fwd
    print(f"{seconds:.2f} s for the report on fa3_fwd")
    expect(f"fa3_fwd: broken claims: {sorted(broken(loop))}", not broken(loop))
    expect("fa3_fwd: nothing is spilled", kernel["spill_store_bytes"] == kernel["spill_load_bytes"] == 0)
    expect("fa3_fwd: the warp that loads copies twice in its loop",
           [sum(row["kind"] == "copy_in" for row in at["rows"]) for at in kernel["loops"]
            if at["role"] == "load" and at["kind"] == "loop"] == [2])

    # Where no exponential is asked for beside P V but those of the rescaling.
    late = report(schedc, FWD, "-p", "early=0")[0]
    expect("early = 0: less stands beside P V",
           late["beside_products"]["exponentials"] < loop["beside_products"]["exponentials"] and "overlap" in broken(late))

    for name, params in UNIFORM:
        moves = uniform_moves(schedc, name, params)
        expect(f"{name} {' '.join(params)}: moves to uniform registers beside products, by loop: {moves}", moves and not any(moves))

    alone = report(schedc, os.path.join(ROOT, "schedules/fa3_alg1.sched"))[0]
    expect("fa3_alg1: the claims do not hold", {"issue", "overlap"} <= broken(alone))
    expect("fa3_alg1: one product at a time", all(len(row["in_flight"]) < 2 for row in alone["rows"]))
    expect("fa3_alg1: no exponential beside a product",
           alone["beside_products"]["exponentials"] == 0 < alone["all"]["exponentials"])

    with tempfile.TemporaryDirectory() as folder:
        for name, edits in AT_ONCE.items():
            changed = report(schedc, edited(folder, name, edits), "--lenient")[0]
            expect(f"{name}: broken claims: only {sorted(broken(changed))}", BROKEN[name] <= broken(changed))
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
