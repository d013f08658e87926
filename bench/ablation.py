#!/usr/bin/env python3
"""What each idea of FlashAttention-3 is worth, and of fa3_stale beyond it, from .sched files alone.

  bench/ablation.py [--schedc build/release/schedc] [--out bench/results/ablation.json] [--only REGEX] [--dry-run]

Each table is one call of `schedc bench`: its variants are verified and measured in turns. Beside a variant stands
the one that it corresponds to, of the paper's ablation (Shah et al., 2024, table 2, on an H100) or of the ladder of
hand-written kernels that the design started from (on an H200), with its TFLOP/s and tensor-core use.
"""
import argparse
import collections
import os
import re
import sys

from calls import bench, build, command_line, write

ALONE, ALG1, FWD, STALE = (f"schedules/{name}.sched" for name in ("fa3_alone", "fa3_alg1", "fa3_fwd", "fa3_stale"))
EDITED = "build/ablation"  # where schedules go that a variant changes
SAMPLE = "512"  # rows of each variant's result that are compared

# settings: params. hand: row of the ladder, TFLOP/s sustained, % of the tensor cores' cycles. paper: row of its table,
# TFLOP/s. edit: text of the schedule, and what stands there instead.
Row = collections.namedtuple("Row", "what file settings hand paper edit", defaults=(None, None, None))

# A condition on columns: the emitter then stores element by element instead of by 16 bytes.
NARROW = ("where(l[i] == 0, 0, o[i,d] / l[i])\n", "where(l[i] == 0, 0, o[i,d] / l[i]) if d < D\n")
# Each CTA takes every n-th tile, and draws none. The order of the tiles stays.
STRIDE = ("b : B) dynamic", "b : B) persistent")


def stale(what, hand=None, edit=None, **params):
    return Row(what, STALE, [f"{name}={value}" for name, value in params.items()], hand, edit=edit)


PAPERS = ["both", "no ping-pong", "no GEMM-softmax pipelining", "no warp specialisation"]  # one is not in the paper

FULL = [
    Row("no warp specialisation", ALONE, [], paper=("no warp specialisation", 570)),
    Row("Algorithm 1", ALG1, ["pingpong=false"], ("Algorithm 1, BN 176, no overlap", "554", 70)),
    Row("+ ping-pong", ALG1, ["pingpong=true"], ("+ ping-pong", "601", 79), ("no GEMM-softmax pipelining", 582)),
    Row("Algorithm 2, all exponentials beside P V", FWD, ["early=176", "pingpong=false", "pair=1"],
        ("Algorithm 2, BN 176 (exponentials forced before the PV wait)", "606", 82)),
    Row("+ ping-pong", FWD, ["early=176", "pingpong=true", "pair=1"],
        ("Algorithm 2 + ping-pong, persistent", "622", 84)),
    Row("Algorithm 2, those of 64 columns", FWD, ["pingpong=false", "pair=1"], None, ("no ping-pong", None)),
    Row("+ ping-pong", FWD, ["pingpong=true", "pair=1"], None, ("both", 661)),
    Row("+ clusters of 2", FWD, ["pingpong=true", "pair=2"]),
    stale("both products waited for at once",
          ("Algorithm 2, persistent, no ping-pong, wait left to ptxas, 16-byte stores", "650", 89),
          BN=176, stale="false", early=0, staged="false", pair=1, pingpong="false"),
    stale("the same, O stored by 2 bytes", edit=NARROW,
          BN=176, stale="false", early=0, staged="false", pair=1, pingpong="false"),
    stale("+ clusters of 2", ("+ cluster of 2 with K/V multicast", "660", 89),
          BN=176, stale="false", early=0, staged="false", pair=2, pingpong="false"),
    stale("guarded stale maximum, no clusters, key tiles of 160",  # of 176: registers spill
          ("guarded stale maximum, one block for exp, convert, rescale", "668", 93),
          BN=160, early=0, staged="false", pair=1, pingpong="false"),
    stale("+ ping-pong", BN=160, early=0, staged="false", pair=1, pingpong="true"),
    stale("+ clusters of 2", ("+ ping-pong + cluster of 2", "689-696", 94),
          BN=160, early=0, staged="false", pair=2, pingpong="true"),
    stale("+ O stored by the copy engine", BN=160, early=0, pair=2, pingpong="true"),
    stale("the same with key tiles of 144", ("same with BN 144 and Q in registers", "683-690", 92),
          BN=144, early=0, pair=2, pingpong="true"),
    stale("key tiles of 128", BN=128, early=0, pair=2, pingpong="true"),
    stale("the same without clusters", BN=128, early=0, pair=1, pingpong="true"),
    stale("+ exponentials of 32 columns beside P V", BN=128, early=32, pair=1, pingpong="true"),
    stale("as shipped: 3 math warpgroups, key tiles of 80, all exponentials beside P V"),
]
CAUSAL = [
    Row("Algorithm 2, tiles by a fixed stride", FWD, ["pingpong=true", "pair=1"], edit=STRIDE),
    Row("the same, tiles drawn", FWD, ["pingpong=true", "pair=1"]),
    stale("stale maximum, key tiles aligned",
          ("persistent CTAs with an atomic tile counter", "660-667", None), BN=176, early=176, pair=1, pingpong="false"),
    stale("+ ping-pong", BN=176, early=176, pair=1, pingpong="true"),
    stale("+ clusters of 2", BN=176, early=176, pair=2, pingpong="true"),
    stale("the same with key tiles of 144, O stored by the copy engine", ("+ cluster of 2 + ping-pong (BN 144, Q in registers)", "674-683", None),
          BN=144, early=144, pair=2, pingpong="true"),
    stale("the same with the exact maximum", ("the same with exact softmax", "617", None),
          BN=144, stale="false", early=0, pair=2, pingpong="true"),
    stale("key tiles of 128, exponentials of 48 columns beside P V", BN=128, early=48, pair=2, pingpong="true"),
    stale("the same without clusters, of 32 columns", BN=128, early=32, pair=1, pingpong="true"),
    stale("as shipped: no ping-pong, of 48 columns"),
]


def steps(exact, one, both):
    """Of a head dimension."""
    return [stale("exact maximum", exact, stale="false", pair=1, pingpong="false"),
            stale("guarded stale maximum", one, pair=1, pingpong="false"),
            stale("+ ping-pong", pair=1, pingpong="true"),
            both]


def clusters(hand):
    return stale("+ clusters of 2", hand, pair=2, pingpong="true")


# With three math warpgroups, as the others of d 64 have, a release to both CTAs does not fit the registers.
CLUSTERS_64 = stale("+ clusters of 2, tiles of 128 queries", pair=2, pingpong="true", BM=128)


def long(d, causal, rows):
    """A table of 16 k tokens, hidden size 2048."""
    heads = 2048 // d
    return (f"d {d}, {'causal' if causal else 'full'}, s 16384", [f"D={d}", f"causal={str(causal).lower()}"],
            ["B=1", "M=16384", "N=16384", f"H={heads}", f"G={heads}"], rows)


TABLES = [  # (name, params of all variants, dimensions that are not those of the case `paper`, variants)
    ("d 128, full, b 4, h 16, s 8448", [], [], FULL),
    long(128, True, CAUSAL),
    long(256, False, steps(("exact", "684", None), ("stale maximum", "714", None),
                           clusters(("+ ping-pong + cluster of 2", "722-730", None)))),
    long(256, True, steps(None, ("persistent CTAs with an atomic tile counter", "699", None),
                          clusters(("+ cluster of 2 + ping-pong", "717-727", None)))),
    long(64, False, steps(None, ("3 math warpgroups, BM 192, BN 128, stale maximum", "551-561", None), CLUSTERS_64)),
]


def file_of(row):
    """The row's schedule, changed where it says so."""
    if not row.edit:
        return row.file
    with open(row.file, encoding="utf-8") as file:
        text = file.read()
    if text.count(row.edit[0]) != 1:
        raise SystemExit(f"{row.file} does not say once: {row.edit[0].strip()}")
    os.makedirs(EDITED, exist_ok=True)
    path = os.path.join(EDITED, os.path.basename(row.file))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(*row.edit))
    return path


def configurations(tables):
    """File and params of all variants."""
    settings = {(file_of(row), *params, *row.settings) for _, params, _, rows in tables for row in rows}
    return [(file, params) for file, *params in sorted(settings)]


def options_of(table):
    """Of `schedc bench`."""
    _, params, dims, rows = table
    words = [word for param in params for word in ("-p", param)] + [word for dim in dims for word in ("--set", dim)]
    return words + [word for row in rows for word in (file_of(row), *row.settings)]


def variant(row, measured):
    v = {"what": row.what}
    if row.edit:
        v["edit"] = row.edit
    if row.hand:
        v["hand_written"] = dict(zip(("row", "tflops_sustained", "tensor_percent"), row.hand))
    if row.paper:
        v["paper"] = dict(zip(("row", "tflops"), row.paper))
    return {**v, **measured}


# ---- showing


def middle(text):
    """Of "689-696"."""
    ends = [float(x) for x in text.split("-")]
    return sum(ends) / len(ends)


def ladder(variants):
    """Lines of cells: ratios are to the first variant that has a counterpart."""
    base = next((v for v in variants if v.get("hand_written")), variants[0])
    for v in variants:
        cells = [v["what"], "not measured" if v.get("pass", True) else "WRONG", "", "", "", "", ""]
        if "tflops_sustained" in v:
            cells[1] = f"{v['tflops_cold']:.0f} / {v['tflops_sustained']:.0f}"
            cells[2] = f"{v['tensor_utilisation'] * 100:.0f} %"
            cells[3] = f"{v['tflops_sustained'] / base['tflops_sustained']:.3f}" if "tflops_sustained" in base else ""
        hand = v.get("hand_written")
        if hand:
            cells[4] = hand["row"]
            cells[5] = hand["tflops_sustained"] + (f", {hand['tensor_percent']} %" if hand["tensor_percent"] else "")
            if base.get("hand_written"):
                cells[6] = f"{middle(hand['tflops_sustained']) / middle(base['hand_written']['tflops_sustained']):.3f}"
        yield cells


def ablation(variants):
    """The paper's table."""
    rows = sorted((v for v in variants if v.get("paper")), key=lambda v: PAPERS.index(v["paper"]["row"]))
    if not rows:
        return
    ours, theirs = rows[0].get("tflops_sustained"), rows[0]["paper"]["tflops"]
    for v in rows:
        its, got = v["paper"]["tflops"], v.get("tflops_sustained")
        yield [v["paper"]["row"], f"{v['tflops_cold']:.0f} / {got:.0f}" if got else "not measured",
               f"{got / ours:.3f}" if got and ours else "", str(its or ""), f"{its / theirs:.3f}" if its else ""]


def text_table(head, lines):
    lines = [head, *lines]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for line in lines:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def tables_of(table):
    """(name, head, lines): the ladder, and the paper's ablation where the table has it."""
    yield table["name"], ["TFLOP/s", "cold / sust.", "tensor", "ratio", "hand-written", "sust., tensor", "ratio"], \
        list(ladder(table["variants"]))
    lines = list(ablation(table["variants"]))
    if lines:
        yield "the paper's ablation", ["TFLOP/s", "cold / sust.", "ratio", "paper", "ratio"], lines


def show(table):
    if "variants" not in table:
        print(f"\n{table['name']}\n\n{table['error']}", flush=True)
        return
    for name, head, lines in tables_of(table):
        print(f"\n{name}\n")
        text_table(head, lines)
    sys.stdout.flush()


# ---- the command


def one_table(args, of, document):
    entry, code = bench(args, ["--sample", SAMPLE, *options_of(of)], document)
    table = {"name": of[0], **entry}
    document["tables"].append(table)
    if "variants" in table:
        table["variants"] = [variant(*pair) for pair in zip(of[-1], table["variants"])]
    show(table)
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
    document = {"command": command_line(), "tables": []}
    if not args.dry_run:
        build(args.schedc, configurations(tables))
    codes = []
    for table in tables:
        codes.append(one_table(args, table, document))
        write(args.out, document)
        if codes[-1] == 3:  # no GPU: the others would say the same
            break
    bad = sum(c != 0 for c in codes)
    print(f"\n{len(codes) - bad} passed, {bad} failed, {len(tables) - len(codes)} skipped")
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main())
