#!/usr/bin/env python3
"""In which order tiles of a grid are taken: the emitted function that finds a tile's place, built as C, beside the rule
of lang/README.md (section 4): the first axis fastest; sections slowest, of these the last axis'.

  tests/order.py --schedc build/release/schedc
"""
import argparse
import os
import random
import re
import subprocess
import tempfile

# (extent, section: 0 for none, reversed) of each axis: how a schedule says them, and in numbers.
CLUSTERS = [("", {}), (" cluster (a : 2)", {0: 2}), (" cluster (e : 2)", {2: 2}),
            (" cluster (b : 4)", {1: 4})]
EXTENTS = {"P": lambda n: n["P"], "Q": lambda n: n["Q"], "cdiv(R, 64)": lambda n: -(-n["R"] // 64)}
SECTIONS = {"": lambda n: 0, " by 1": lambda n: 1, " by 3": lambda n: 3,
            " by max(1, P / 2)": lambda n: max(1, n["P"] // 2)}
KERNEL = """kernel k {
  in  A : f32[P, Q, R]
  out C : f32[P, Q, R]
  grid (%s)%s
  role r : 1 warpgroup {
    reg c : f32[64]
    c[i] = A[a, b, e*64 + i]
    C[a, b, e*64 + i] = c[i]
  }
}
"""
FRAME = """#include <stdio.h>
#include <stdlib.h>
static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }
struct args { int P, Q, R; };
%s
int main(int n, char **v) {
  struct args args = {atoi(v[1]), atoi(v[2]), atoi(v[3])};
  (void)min, (void)max, (void)n;
  for (int tile = 0; tile < atoi(v[4]); tile++) {
    struct k_place at = k_place_of(args, tile);
    printf("%%d %%d %%d\\n", at.a_tile, at.b_tile, at.e_tile);
  }
}
"""


def ordered(axes, clusters, numbers):
    """Places in their order, of clusters: of each its first CTA's."""
    each = [clusters.get(i, 1) for i in range(len(axes))]
    extent = [-(-EXTENTS[e](numbers) // n) for (e, _, _), n in zip(axes, each)]
    section = [SECTIONS[s](numbers) and max(1, SECTIONS[s](numbers) // n) for (_, s, _), n in zip(axes, each)]

    def walk(axis, ranges):  # sections, from the axis that is declared last
        if axis < 0:
            places = [[]]
            for r in reversed(ranges):  # the last axis slowest
                places = [[i] + p for p in places for i in r]
            return places
        width = section[axis] or max(1, extent[axis])
        parts = [range(first, min(first + width, extent[axis])) for first in range(0, extent[axis], width)]
        return [p for part in parts for p in walk(axis - 1, ranges[:axis] + [part] + ranges[axis + 1:])]

    places = walk(len(axes) - 1, [range(e) for e in extent])
    return [[each[i] * (extent[i] - 1 - at if axes[i][2] else at) for i, at in enumerate(p)] for p in places]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default="build/release/schedc")
    args = parser.parse_args()
    pick = random.Random(1)
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        schedule, program = os.path.join(folder, "k.sched"), os.path.join(folder, "k")
        for _ in range(40):
            axes = [(e, pick.choice(list(SECTIONS)), pick.random() < 0.3) for e in EXTENTS]
            said, clusters = pick.choice(CLUSTERS)
            grid = ", ".join(f"{'reversed ' if r else ''}{name} : {e}{s}" for name, (e, s, r) in zip("abe", axes))
            with open(schedule, "w", encoding="utf-8") as file:
                file.write(KERNEL % (grid, said))
            text = subprocess.run([args.schedc, "build", schedule, "--to", "cu", "-o", "-"], check=True,
                                  capture_output=True, encoding="utf-8").stdout
            found = re.search(r"^struct k_place .*?^}\n", text, re.S | re.M)[0]
            for old, new in (("DEV k_place", "static struct k_place"), ("const k_args &args", "struct args args")):
                found = found.replace(old, new)
            with open(program + ".c", "w", encoding="utf-8") as file:
                file.write(FRAME % found.replace("return {", "return (struct k_place){"))
            subprocess.run([os.environ.get("CC", "cc"), "-o", program, program + ".c"], check=True)
            ok = True
            for _ in range(6):
                numbers = {"P": pick.randint(1, 7), "Q": pick.randint(1, 6), "R": pick.randint(1, 400)}
                want = ordered(axes, clusters, numbers)
                got = subprocess.run([program, *map(str, numbers.values()), str(len(want))], capture_output=True,
                                     encoding="utf-8", check=True).stdout
                ok &= [list(map(int, line.split())) for line in got.splitlines()] == want
            passed, failed = passed + ok, failed + (not ok)
            if not ok:
                print(f"FAIL grid ({grid}){said}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
