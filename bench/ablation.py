#!/usr/bin/env python3
"""What each idea of FlashAttention-3 is worth, from .sched files alone.

  bench/ablation.py [--schedc build/release/schedc] [--out bench/results/ablation.json] [--only REGEX] [--dry-run]

Each table is one call of `schedc bench`: its variants are verified and measured in turns. The first table is the
paper's ablation (Shah et al., 2024, table 2: 661 with all, 582 without GEMM-softmax pipelining, 570 without warp
specialisation); the others are the steps from Algorithm 1 to the fastest schedule here.
"""
import argparse
import json
import os
import re
import subprocess
import sys

ALONE, ALG1, FWD, STALE = (f"schedules/{name}.sched" for name in ("fa3_alone", "fa3_alg1", "fa3_fwd", "fa3_stale"))

# (table, options of all its variants, [(what it is, file, settings)])
TABLES = [
    ("paper: d 128, full, b 4, h 16, s 8448", ["--case", "paper"], [
        ("ping-pong and overlap (Algorithm 2)", FWD, ["pingpong=true"]),
        ("overlap, no ping-pong", FWD, ["pingpong=false"]),
        ("ping-pong, no overlap (Algorithm 1)", ALG1, ["pingpong=true"]),
        ("neither", ALG1, ["pingpong=false"]),
        ("no warp specialisation", ALONE, []),
    ]),
    ("ladder: d 128, full, b 4, h 16, s 8448", ["--case", "paper"], [
        ("Algorithm 1", ALG1, ["pingpong=false"]),
        ("+ ping-pong", ALG1, ["pingpong=true"]),
        ("Algorithm 2", FWD, ["pingpong=false"]),
        ("+ ping-pong", FWD, ["pingpong=true"]),
        ("guarded stale maximum, both products waited for at once", STALE, ["pair=1", "pingpong=false"]),
        ("+ ping-pong", STALE, ["pair=1", "pingpong=true"]),
        ("+ clusters of 2 with multicast, no ping-pong", STALE, ["pair=2", "pingpong=false"]),
        ("+ both", STALE, ["pair=2", "pingpong=true"]),
        ("the same with key tiles of 144", STALE, ["pair=2", "pingpong=true", "BN=144"]),
    ]),
    ("ladder: d 128, causal, s 16384",
     ["--case", "paper", "-p", "causal=true", "--set", "B=1", "--set", "M=16384", "--set", "N=16384"], [
         ("Algorithm 2, tiles by a fixed stride", FWD, ["BN=176"]),
         ("tiles of 128 keys", FWD, ["BN=128"]),
         ("stale maximum, tiles drawn, longest first, aligned to the diagonal", STALE, ["pair=1", "pingpong=false"]),
         ("+ ping-pong", STALE, ["pair=1", "pingpong=true"]),
         ("+ clusters of 2", STALE, ["pair=2", "pingpong=true"]),
         ("the same with key tiles of 144", STALE, ["pair=2", "pingpong=true", "BN=144"]),
     ]),
]
# Inputs on which warps leave the stale maximum's fast path: what that costs at its worst.
TABLES += [(f"adversarial inputs ({kind}): d 128, full, s 8448", ["--case", "paper", "--inputs", kind],
            [("Algorithm 2", FWD, ["pingpong=true"]), ("stale maximum", STALE, ["pair=2"])])
           for kind in ("spike", "large", "outliers")]


def run(schedc, options, variants, dry):
    command = [schedc, "bench", *options, "--format", "json"]
    command += ["--dry-run"] if dry else []
    for _, file, settings in variants:
        command += [file, *settings]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", check=False)
    return command, done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


def show(variants, got):
    first = got["variants"][0].get("tflops_sustained")
    for (what, *_), v in zip(variants, got["variants"]):
        if "tflops_sustained" not in v:
            print(f"  {what:68} {'not measured' if v.get('pass', True) else 'WRONG'}")
            continue
        print(f"  {what:68} {v['tflops_cold']:6.1f} {v['tflops_sustained']:6.1f} {v['tensor_utilisation'] * 100:5.1f} % "
              f"{v['clock_mhz']:5.0f} MHz  {v['tflops_sustained'] / first:5.3f}")


def one_table(args, name, options, variants, document):
    print(f"\n{name}", flush=True)
    command, code, got, error = run(args.schedc, options, variants, args.dry_run)
    table = {"name": name, "command": command, "pass": code == 0}
    document["tables"].append(table)
    if not isinstance(got, dict):  # a list of diagnostics
        table["error"] = "".join(d["text"] + "\n" for d in got or []) + error.strip().replace("schedc bench: ", "")
        error = table["error"]
        print(error.strip())
        return code
    for key in ("device", "multiprocessors", "driver", "date", "schedc"):
        if key in got:
            document[key] = got[key]
    table["variants"] = [{"what": what, **v} for (what, *_), v in zip(variants, got["variants"])]
    show(variants, got)
    return code


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default="build/release/schedc")
    parser.add_argument("--out", metavar="FILE", help="write JSON")
    parser.add_argument("--only", metavar="REGEX", help="tables whose name matches")
    parser.add_argument("--dry-run", action="store_true", help="check the variants; needs no GPU")
    args = parser.parse_args()
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    tables = [t for t in TABLES if not args.only or re.search(args.only, t[0])]
    document = {"command": sys.argv, "tables": []}
    print(f"{'TFLOP/s':>77} cold  sust. tensor    clock  ratio")
    codes = []
    for name, options, variants in tables:
        codes.append(one_table(args, name, options, variants, document))
        if args.out:
            with open(args.out, "w", encoding="utf-8") as file:
                json.dump(document, file, indent=1)
        if codes[-1] == 3:  # no GPU: the others would say the same
            break
    bad = sum(c != 0 for c in codes)
    print(f"\n{len(codes) - bad} passed, {bad} failed, {len(tables) - len(codes)} skipped")
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main())
