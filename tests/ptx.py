#!/usr/bin/env python3
"""Is a synchronising instruction that NVRTC lost, doubled, moved or changed noticed (runtime/ptx)?

  ptx.py --schedc build/release/schedc [--check build/release/tests/check_ptx] [--most N] [--table] [KERNEL …]

Kernels of schedules/ and tests/corpus/ are built to PTX, which must pass: every build compares it with the plan. Then
one instruction of that text at a time is spoilt, in each of the ways of KINDS, at most N (default 24) for a kernel and a
kind, evenly spread, and the checker must object to each; but for those that EQUIVALENT says why nothing is wrong with.
--table prints how many of each kind were noticed. Where there is no NVRTC, all is skipped.
"""
import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MISSING = 3  # exit code: the machine lacks something

# File, unit, parameters: products and copies in and out, turns over instances and over CTAs, clusters, a dynamic grid,
# dealt tiles, private rings, fills by threads and copies together, reductions, a sequence.
KERNELS = {
    "gemm": ("schedules/gemm.sched", "gemm", []),
    "gemm_pingpong": ("schedules/gemm_pingpong.sched", "gemm_pingpong", []),
    "gemm_cooperative": ("schedules/gemm_cooperative.sched", "gemm_cooperative", []),
    "softmax_rows": ("schedules/softmax_rows.sched", "softmax_rows", ["stages=4"]),
    "fa3_fwd": ("schedules/fa3_fwd.sched", "fa3_fwd", ["pair=2"]),
    "fa3_bwd": ("schedules/fa3_bwd.sched", "fa3_bwd", []),
    "fa3_stale": ("schedules/fa3_stale.sched", "fa3_stale", ["pair=2"]),
    "fa3_bwd_ordered": ("schedules/fa3_bwd_ordered.sched", "fa3_bwd_ordered", []),
    "slices": ("tests/corpus/slices.sched", "by_warp", []),
    "arrivals": ("tests/corpus/arrivals.sched", "read_tensor", []),
}

EVENT = re.compile(r"^(@!?%?\w+ )?\s*(mbarrier\.|bar\.|barrier\.|fence\.|cp\.async|cp\.reduce|wgmma\.|setmaxnreg|st\.async|"
                   r"ld\.acquire|red\.release|griddepcontrol)")
LABEL = re.compile(r"^(\$L__BB\d+_\d+):")
JUMP = re.compile(r"^(@!?%p\d+ )?bra(\.uni)?\s+(\$L__BB\d+_\d+);")


def events(lines):
    return [i for i, line in enumerate(lines) if EVENT.match(line)]


def replaced(lines, i, *new):
    return lines[:i] + list(new) + lines[i + 1:]


def edit(pattern, *by):
    """A kind: where the pattern stands in an event, it becomes each of these (texts, or functions of the match)."""
    def mutants(lines):
        for i in events(lines):
            for new in by:
                line = re.sub(pattern, new, lines[i])
                if line != lines[i]:
                    yield i, replaced(lines, i, line)
    return mutants


def lost(lines):
    for i in events(lines):
        yield i, replaced(lines, i)


def doubled(lines):
    for i in events(lines):
        yield i, replaced(lines, i, lines[i], lines[i])


def plain_between(lines, i, j):
    """Nothing but what computes stands between them: no label, jump, brace of inline assembly."""
    return not any(LABEL.match(line) or "bra" in line or line in ("{", "}") for line in lines[i:j])


def unit(lines, i):
    """The lines [lo, hi) of the inline assembly in braces that line i is part of, or of it alone."""
    lo = next((j for j in range(i, max(i - 12, 0), -1) if lines[j] in ("{", "}")), None)
    if lo is None or lines[lo] == "}" or "{" in lines[lo + 1:i]:
        return i, i + 1
    return lo, lines.index("}", i) + 1


def swapped(lines):
    found = events(lines)
    for i, j in zip(found, found[1:]):
        if lines[i].split()[0] != lines[j].split()[0] and plain_between(lines, i, j):
            new = list(lines)
            new[i], new[j] = new[j], new[i]
            yield i, new


def loops(lines):
    """(first line, last line) of blocks of code that jump back."""
    at = {match.group(1): i for i, match in enumerate(map(LABEL.match, lines)) if match}
    for i, match in enumerate(map(JUMP.match, lines)):
        if match and at.get(match.group(3), i) < i:
            yield at[match.group(3)], i


def before_the_loop(lines):
    for first, last in loops(lines):
        for i in [i for i in events(lines) if first < i < last][:1]:
            lo, hi = unit(lines, i)
            if plain_between(lines, first + 1, lo):
                yield i, lines[:first] + lines[lo:hi] + lines[first:lo] + lines[hi:]


def behind_the_loop(lines):
    for first, last in loops(lines):
        for i in [i for i in events(lines) if first < i < last][-1:]:
            lo, hi = unit(lines, i)
            if plain_between(lines, hi, last):
                yield i, lines[:lo] + lines[hi:last + 1] + lines[lo:hi] + lines[last + 1:]


def loop_of_one_round(lines):
    """Of loops in each other the inner one, if something stands between their ends: else the outer's rounds may be taken
    for the inner's."""
    found, at = list(loops(lines)), events(lines)
    for first, last in found:
        inner = not any(first <= lo and hi < last for lo, hi in found)
        ends = [hi for lo, hi in found if lo <= first and last < hi]
        apart = not ends or any(last < i < min(ends) for i in at)
        if inner and apart and any(first < i < last for i in at):
            yield last, replaced(lines, last)


def unelected(lines):
    """What a branch on the thread kept from the others: the branch right before an event is gone."""
    found = events(lines)
    for i, match in enumerate(map(JUMP.match, lines)):
        after = [j for j in found if j > i][:1]
        if match and match.group(1) and after and re.match(r"mbarrier\.arrive|cp\.", lines[after[0]]) and \
                plain_between(lines, i + 1, after[0]):
            yield i, replaced(lines, i)


def no_loop(lines):
    for i, line in enumerate(lines):
        if line == "@!done bra again;":
            yield i, replaced(lines, i)


def other_map(lines):
    """Copies by the map of another copy. (Several registers may hold the address of one.)"""
    which = re.compile(r"\[(%rd\d+), \{")
    of = dict(re.match(r"cvta\.param\.u64\s+(\S+), (\S+);", line).groups() for line in lines if line.startswith("cvta.param"))
    found = [(i, which.search(lines[i]).group(1)) for i in events(lines) if which.search(lines[i])]
    for (i, mine), (_, other) in zip(found, found[1:] + found[:1]):
        if of[mine] != of[other]:
            yield i, replaced(lines, i, lines[i].replace(f"[{mine}, ", f"[{other}, "))


def other_line(lines):
    """An event that stands under another line of the schedule."""
    for i in events(lines):
        if not re.match(r"setmaxnreg|mbarrier\.init|fence\.mbarrier_init|bar\.sync\s+0;|barrier\.cluster|griddepcontrol", lines[i]):
            yield i, replaced(lines, i, ".loc 1 1 1", lines[i])


def other_parity(lines):
    """A wait for the phase after the one that is meant."""
    of = re.compile(r"^(mbarrier\.try_wait\.parity\S+ done, \[\S+\], )(\S+);")
    for i, match in enumerate(map(of.match, lines)):
        if match:
            yield i, replaced(lines, i, f"xor.b32 %r99999, {match.group(2)}, 1;", f"{match.group(1)}%r99999;")


def scale(lines):
    """Products that add begin anew, and the other way round."""
    for i, line in enumerate(lines):
        if line.startswith("setp.ne.b32 p, "):
            yield i, replaced(lines, i, line.replace(".ne.", ".eq."))


def bumped(match):
    return match.group(1) + str(int(match.group(2)) + 1) + match.group(3)


def dropped(match):
    return match.group(1) + str(int(match.group(2)) - 1) + match.group(3) if int(match.group(2)) else match.group(0)


KINDS = {
    "lost": lost,
    "doubled": doubled,
    "swapped with the next": swapped,
    "moved before its loop": before_the_loop,
    "moved behind its loop": behind_the_loop,
    "a loop that goes round once": loop_of_one_round,
    "at another line": other_line,
    "a wait that does not loop": no_loop,
    "done by all threads": unelected,
    "wgmma.wait_group N": edit(r"(wgmma\.wait_group\S* )(\d+)(;)", bumped, dropped),
    "cp.async.bulk.wait_group N": edit(r"(bulk\.wait_group\S* )(\d+)(;)", bumped, dropped),
    ".read": edit(r"(bulk\.wait_group)(\.read)?( \d+;)", lambda m: m[1] + ("" if m[2] else ".read") + m[3]),
    "a barrier's number": edit(r"^(bar\.\w+)\s+(%r\d+|\d+)([,;])", r"\1 15\3"),
    "a barrier's threads": edit(r"^(bar\.(?:sync|arrive)\s+\S+), (%r\d+|\d+);", r"\1, 96;"),
    "lanes that meet": edit(r"^bar\.warp\.sync\s+\S+;", "bar.warp.sync 65535;"),
    "arrivals of mbarrier.init": edit(r"^(mbarrier\.init\S+ \[\S+\]), (%r\d+|\d+);", r"\1, 77;"),
    "bytes of expect_tx": edit(r"(expect_tx\S* (?:_, )?\[\S+\]), (%r\d+|\d+);", r"\1, 24;"),
    "another mbarrier": edit(r"^(mbarrier\.(?!init)\S+ (?:_, |done, )?\[%r\d+)\]", r"\1+64]"),
    "the mbarrier of another stage": edit(r"^(mbarrier\.(?!init)\S+ (?:_, |done, )?\[%r\d+)((?:\+\d+)?)\]",
                                          lambda m: f"{m[1]}+{int(m[2] or 0) + 8}]"),
    "a copy to the mbarrier of another stage": edit(r"^(cp\.async\.bulk\.tensor\S+shared::cluster\.global.*\}\], \[%r\d+)((?:\+\d+)?)\]",
                                                    lambda m: f"{m[1]}+{int(m[2] or 0) + 8}]"),
    "the parity of the phase": other_parity,
    "arrivals without their bytes": edit(r"arrive\.expect_tx(\S+ _, \[\S+\]), \S+;", r"arrive\1;"),
    "setmaxnreg N": edit(r"^(setmaxnreg\S+ )(\d+)(;)", lambda m: f"{m[1]}{int(m[2]) + 8}{m[3]}"),
    "setmaxnreg inc, dec": edit(r"^setmaxnreg\.(inc|dec)", lambda m: "setmaxnreg." + ("inc" if m[1] == "dec" else "dec")),
    "a fence of another proxy": edit(r"^fence\.proxy\.async(\.shared::cta)?;", "fence.acq_rel.cta;"),
    "a fence of another space": edit(r"^fence\.proxy\.async(\.shared::cta)?;",
                                     lambda m: "fence.proxy.async;" if m[1] else "fence.proxy.async.shared::cta;"),
    "a product's columns": edit(r"(wgmma\.mma_async\S+\.m64n)(\d+)(k)", lambda m: f"{m[1]}{int(m[2]) - 8}{m[3]}"),
    "a product's accumulation": scale,
    "a copy's tensor map": other_map,
    "copies to this CTA alone": edit(r"\.multicast::cluster( .*\]), (%rs\d+);", r"\1;"),
    "CTAs of a multicast": edit(r"(multicast::cluster .*\]), (%rs\d+);", r"\1, 1;"),
    "a weaker arrival of the cluster": edit(r"^barrier\.cluster\.arrive\.release", "barrier.cluster.arrive.relaxed"),
}

# What the checker does not see: kernel, kind, what the line holds, why.
LIMITS = [
    ("arrivals", "moved before its loop", "bar.warp.sync", "it is the only event of the loop, of which paths then show one round"),
    ("arrivals", "moved behind its loop", "bar.warp.sync", "the same"),
]


def is_limit(kernel, kind, line):
    return any(k == kernel and n == kind and p in line for k, n, p, _ in LIMITS)


def spread(items, most):
    step = max(1, -(-len(items) // most))
    return items[::step]


def build(schedc, folder, name):
    path, unit, params = KERNELS[name]
    out = os.path.join(folder, name + ".ptx")
    options = [word for param in params for word in ("-p", param)]
    done = subprocess.run([schedc, "build", path, unit, *options, "-o", out, "--no-cache", "--lenient"], cwd=ROOT,
                          capture_output=True, text=True, timeout=300)
    if done.returncode == MISSING:
        return None
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stdout}{done.stderr}")
    # one statement a line, without blanks before it
    with open(out, encoding="utf-8") as file:
        return [line.strip() for line in file.read().split("\n")]


def judge(check, folder, name, texts):
    """What the checker says of each text."""
    path, unit, params = KERNELS[name]
    files = []
    for i, lines in enumerate(texts):
        files.append(os.path.join(folder, f"{i}.ptx"))
        with open(files[-1], "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
    options = [word for param in params for word in ("-p", param)]
    done = subprocess.run([check, path, "-k", unit, *options], cwd=ROOT, input="\n".join(files) + "\n",
                          capture_output=True, text=True, timeout=600)
    said = [line.split("\t", 1)[1] for line in done.stdout.splitlines()]
    if done.returncode or len(said) != len(texts):
        raise RuntimeError(f"{name}: {check} ends with {done.returncode}: {done.stderr}")
    return said


class Tally:
    def __init__(self):
        self.passed = self.failed = 0
        self.kinds = collections.defaultdict(lambda: [0, 0, 0])  # noticed, a limit, missed

    def count(self, good, text):
        self.passed += bool(good)
        self.failed += not good
        if not good:
            print("FAIL", text)


def try_kernel(args, tally, folder, name, lines):
    mutants = [(kind, lines[i], text) for kind, make in KINDS.items() for i, text in spread(list(make(lines)), args.most)]
    said = judge(args.check, folder, name, [lines] + [text for _, _, text in mutants])
    tally.count(said[0] == "ok", f"{name}: {said[0]}")
    for (kind, line, _), verdict in zip(mutants, said[1:]):
        noticed, limit = verdict != "ok", is_limit(name, kind, line)
        tally.kinds[kind][0 if noticed else 1 if limit else 2] += 1
        tally.count(noticed != limit, f"{name}, {kind}: {line[:100]}: {verdict}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default="build/release/schedc")
    parser.add_argument("--check", default="build/release/tests/check_ptx")
    parser.add_argument("--most", type=int, default=24)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("kernels", nargs="*", default=list(KERNELS))
    args = parser.parse_args()
    args.schedc, args.check = os.path.abspath(args.schedc), os.path.abspath(args.check)
    tally, skipped = Tally(), 0
    with tempfile.TemporaryDirectory() as folder:
        for name in args.kernels:
            lines = build(args.schedc, folder, name)
            if lines is None:
                skipped += 1
            else:
                try_kernel(args, tally, folder, name, lines)
    for kind in KINDS if args.table else []:
        print("%-34s %5d noticed %4d a limit %4d missed" % (kind, *tally.kinds[kind]))
    for kind in KINDS:
        if not skipped and args.kernels == list(KERNELS):
            tally.count(tally.kinds[kind][0], f"no mutant of this kind: {kind}")
    print(f"{tally.passed} passed, {tally.failed} failed, {skipped} skipped")
    sys.exit(tally.failed > 0)


if __name__ == "__main__":
    main()
