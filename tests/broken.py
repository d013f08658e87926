#!/usr/bin/env python3
"""Does a test that runs something notice when the compiler is broken? Each breakage is a small edit of one source file, made
on purpose, in a copy of the tree: the copy is built, and steps of scripts/test that run kernels or units are tried on it until
one fails. Golden texts do not count: they say that something is other than it was, not that it is wrong.

  broken.py [--table tests/broken.md] [--verbose] [NAME …]
  broken.py --fits

NAME: breakages (a part of the title); without it all. --table writes the table of tests/broken.md. A breakage's first steps
are those that are likely to notice; then come all others. What noticed must pass on the copy as it is, too.
"""
import argparse
import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIMIT = 600  # seconds a step may take

# Title, source file, the text that is replaced, what by, and the steps that are likely to notice.
Breakage = collections.namedtuple("Breakage", "title file old new first")
BREAKAGES = [
    Breakage("a mask's limit, `<=` taken for `<`", "compiler/emit/map.c",
             """sign > 0 ? " + 1" : " - 1");""", """sign > 0 ? "" : "");""", ["model fa3_alg1"]),
    Breakage("a maximum over other rows too", "compiler/emit/map.c", '"%s[e >> 1 & 3]"', '"%s[e & 3]"', ["model inplace"]),
    Breakage("the advance of an MN-major operand", "compiler/emit/mma.c",
             "i64 row = o->mn ? s * 16 : other", "i64 row = o->mn ? s * 8 : other", ["model mlp"]),
    Breakage("`_oldest` not moved over a tile that is skipped", "compiler/emit/ring.c",
             """if (many && !cu_is(n, 0)) cu_line(c, "%s_oldest = %s_next;", name, name);""", "", ["model gemm_pingpong"]),
    Breakage("a bound's proof with `<=`", "compiler/facts/prove.c",
             "return at_most(f, a, 1, b);", "return at_most(f, a, 0, b);", ["model edges"]),
    Breakage("16-byte rows past a tensor's end", "compiler/layout/move.c", "inside(s, m, v, v->rank - 1) &&", "", ["model edges"]),
    Breakage("stmatrix where 8 columns are left over", "compiler/layout/move.c", "rows && cols % 16 == 0", "rows && cols % 8 == 0", ["model edges"]),
    Breakage("a fence forgets what no sync has followed", "compiler/flow/state.c",
             "d->set &= (u8) ~(UNFENCED_WRITE | UNFENCED_READ | UNFENCED_ADD);", "d->set = 0;", ["model inplace"]),
    Breakage("no fence before a copy in of a tensor that threads wrote", "compiler/flow/tensor.c",
             "if (in) unordered &= (u8) ~(UNFENCED_READ | UNSYNCED_READ);",
             "if (in) unordered = 0;", ["model inplace"]),
    Breakage("a specification's running sum without its last term", "tests/corpus/ssd.sched",
             "S : f32[g,i] = sum(k) where(k <= i,", "S : f32[g,i] = sum(k) where(k < i,", ["model ssd"]),
    Breakage("the loop that a specification's equations share ends one early", "runtime/spec/spec.c",
             "atomic_fetch_add(&t->next, 1)) < t->total;", "atomic_fetch_add(&t->next, 1)) < t->total - 1;", ["cpu copy"]),
    Breakage("a sum without a last strip of one element", "runtime/spec/strip_run.c",
             "at < extent; at += r->len[t->r]) {", "at < extent - (at > 0); at += r->len[t->r]) {", ["cpu gemm"]),
    Breakage("one arrival for an instance, always", "compiler/flow/derive.c",
             "if (sc_ring_use(k, role, ring) & USE_THREADS) return r->warps;",
             "if (sc_ring_use(k, role, ring) & USE_THREADS) return 1;", ["model forms"]),
    Breakage("no sync between threads that read a stage and those that write it", "compiler/flow/step.c",
             "return (d->set & (UNSYNCED_READ | UNSYNCED_COPY)) ||", "return (d->set & UNSYNCED_COPY) ||", ["model inplace"]),
    Breakage("a wait lets one product more stay in flight", "compiler/flow/step.c",
             "want_keep(f, ins, q->n - done);\n  sc_retire_products(f, done);",
             "want_keep(f, ins, q->n - done + (done > 0));\n  sc_retire_products(f, done);", ["model inplace"]),
    Breakage("a product that is older than a wait tells who is past it", "compiler/flow/order.c",
             "h->all_past |= retired > h->older;", "h->all_past |= retired >= h->older;", ["model arrivals"]),
    Breakage("narrow elements do not change hands on their way to a tensor", "compiler/layout/layout.c",
             "if (exchange_of(k, m, v) != exchange_of(k, n, w)) return false;", "(void)exchange_of;",
             ["model inplace"]),
    Breakage("one thread hands over a held stage that all have written", "compiler/flow/tensor.c",
             "if (one && unordered & (UNFENCED_WRITE | UNSYNCED_WRITE) && use & (USE_THREADS | USE_ASYNC))", "if (0)",
             ["model inplace"]),
    Breakage("one thread tells that all have read a tensor", "compiler/flow/tensor.c",
             "if (one && ((wrote && conflicts(true, does)) || (read && conflicts(false, does))))",
             "if (one && wrote && conflicts(true, does))", ["model arrivals"]),
    Breakage("a loop that ends before it begins counts in another's tile", "compiler/emit/prims_sync.def",
             "return from < to ? (u32)to - (u32)from : 0;", "return (u32)to - (u32)from;", ["model dealt"]),
    Breakage("each thread of a row has a whole value of a vector in parts", "compiler/emit/write.c",
             "%s = ($lane & 3) == 0 ? %s : 0;", "%s = ($lane & 3) < 4 ? %s : 0;", ["model edges"]),
    Breakage("a tile is read where it has been written already", "compiler/emit/write.c",
             "if (reads_shifted(g, dst)) shifted", "if (false && reads_shifted(g, dst)) shifted", ["model dealt"]),
    Breakage("an acquire expects the bytes of half its copies", "compiler/flow/derive.c",
             "ins->plan.bytes = (u32)fill.bytes;", "ins->plan.bytes = (u32)fill.bytes / 2;", ["model gemm"]),
    Breakage("a tensor map's swizzle of 64 bytes", "runtime/cuda/table.c",
             "part->swizzle == 64 ? 2", "part->swizzle == 64 ? 3", ["model forms"]),
    Breakage("the columns of a fragment that stmatrix writes", "compiler/emit/elems.c",
             '"8 * (%s >> 4)"', '"8 * (%s >> 3 & 1)"', ["model gemm_pingpong"]),
    Breakage("the second row of a thread that reads pairs", "compiler/emit/tile.c",
             "return 8 * sc_panel_bytes(part);", "return 4 * sc_panel_bytes(part);", ["model softmax_rows"]),
    Breakage("stages of vectors beside tiles as far apart as the tiles'", "compiler/emit/tile.c",
             'sc_stages_apart(r, b) == r->stage_bytes ? "$%s_bytes"', 'r->stage_bytes ? "$%s_bytes"', ["model beside"]),
    Breakage("vectors beside tiles where the second stage's tiles are", "compiler/place/place.c",
             "place_parts(k, r, true, sc_vectors_at(k, r))", "place_parts(k, r, true, r->stage_bytes)", ["model beside"]),
    Breakage("a pair's column added to the swizzle", "compiler/emit/prims_tiles.def",
             "(mine ^ first % width)", "(mine + first % width)", ["model softmax_rows"]),
    Breakage("a store of 16 bytes where seven elements are inside", "compiler/emit/prims_tensors.def",
             "if (left >= 8 && ((u64)to & 15) == 0)", "if (left >= 7 && ((u64)to & 15) == 0)", ["model vectors_of_rows"]),
    Breakage("a store of 16 bytes wherever it lies", "compiler/emit/prims_tensors.def",
             "if (left >= 8 && ((u64)to & 15) == 0)", "if (left >= 8 && ((u64)to & 1) == 0)", ["model vectors_of_rows"]),
    Breakage("a read of 16 bytes of which the last are outside", "compiler/emit/prims_tensors.def",
             "if (left >= 8 * n - 24 &&", "if (left >= 8 * n - 40 &&", ["model vectors_of_rows"]),
    Breakage("a read of 16 bytes at a multiple of eight", "compiler/emit/prims_tensors.def",
             "((u64)from & 15) == 0", "((u64)from & 7) == 0", ["model vectors_of_rows"]),
    Breakage("a row outside of its tensor is read by 16 bytes", "compiler/emit/prims_tensors.def",
             "const uint4 y = inside ?", "const uint4 y = true ?", ["model vectors_of_rows"]),
    Breakage("a minimum of integers that begins with the least", "compiler/emit/map.c",
             '"-0x7fffffff - 1" : "0x7fffffff"', '"-0x7fffffff - 1" : "-0x7fffffff"', ["model argmax_rows"]),
    Breakage("a sequence's kernels do not wait for each other", "compiler/lower/seq.c",
             "k->follows |= i > 0;", "k->follows |= i > 1;", ["model ssd"]),
    Breakage("a sum of 8-bit products with a bit more than Hopper has", "runtime/data/tensorsum.c",
             "MOST, 13, 14);", "MOST, 13, 15);", ["unit tensorsum"]),
    Breakage("a list may fall though it is declared rising", "runtime/data/ranged.c",
             "r->buf->rising && element < last", "r->buf->rising && element < INT32_MIN", ["unit binding"]),
    Breakage("the GPU looks at all of a list but its last element", "compiler/emit/lists.c",
             "n < list.elements; n += step", "n < list.elements - 1; n += step", ["lists"]),
    Breakage("a list need not rise where the GPU looks", "compiler/emit/lists.c",
             "list.rising && n > 0", "list.rising && n > 0 && false", ["lists"]),
    Breakage("a kernel begins beside the check of its lists", "runtime/cuda/launcher.c",
             "if (check.from < check.to) overlaps = 0;", "", ["unit launcher"]),
    Breakage("a list that a kernel has written is not looked at again", "runtime/cuda/table.c",
             "if (b->dir & F_OUT) return false;", "", ["unit launcher"]),
    Breakage("a tolerance that knows nothing of what tensor cores cut off", "runtime/spec/strip.c",
             "t->cores = a != EL_COUNT &&", "t->cores = false && a != EL_COUNT &&", ["model fa_varlen_bwd"]),
    Breakage("a multicast that leaves out its own CTA", "compiler/emit/copy.c",
             "(1u << ctas) - 1, from);", "(1u << ctas) - 2, from);", ["model fa3_fwd"]),
]


def run(command, folder, **environment):
    """(exit status, output); a status of None: it was not done in time."""
    try:
        done = subprocess.run(command, cwd=folder, env=dict(os.environ, **environment), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=LIMIT, encoding="utf-8", errors="replace")
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        return None, ""


def all_steps():
    """Names of the steps of scripts/test that run something. (The golden unit test compares texts.)"""
    schedules = sorted(glob.glob("schedules/*.sched", root_dir=ROOT) + glob.glob("tests/corpus/*.sched", root_dir=ROOT))
    names = [os.path.basename(path).removesuffix(".sched") for path in schedules]
    units = sorted(os.path.basename(path).removesuffix(".c") for path in glob.glob(ROOT + "/tests/unit/*.c"))
    return ([f"model {name}" for name in names] + [f"cpu {name}" for name in names] + ["verdicts"]
            + [f"unit {name}" for name in units if name != "golden"])


def in_brief(output):
    """The line of a failed step that says most: a fault's, a failed check's, else the last."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for wanted in (r"^seed \d+: [A-Z]{5}|^FAIL more|: the check proves|: not proved", r"error\[", r"FAIL|failed at|FAILED", r"[Ee]rror"):
        for line in lines:
            if re.search(wanted, line):
                return line
    return lines[-1] if lines else "nothing"


class Tree:
    """A copy of the tracked files, and of those that are new, with a build of its own."""

    def __init__(self, folder):
        self.folder = folder
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                                stdout=subprocess.PIPE, encoding="utf-8").stdout.split("\0")
        for path in filter(None, listed):
            if os.path.exists(os.path.join(ROOT, path)):
                os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
                shutil.copy2(os.path.join(ROOT, path), os.path.join(folder, path))
        self.must(["cmake", "--preset", "release"])
        self.build()

    def must(self, command):
        status, output = run(command, self.folder)
        if status != 0:
            raise SystemExit(f"{' '.join(command)}: {'not done in time' if status is None else output[-2000:]}")

    def build(self, *targets):
        self.must(["cmake", "--build", "--preset", "release", "--target", *(targets or ["schedc_cli", "schedc_model"])])

    def write(self, path, text):
        with open(os.path.join(self.folder, path), "w", encoding="utf-8") as file:
            file.write(text)

    def command(self, step):
        kind, _, name = step.partition(" ")
        schedc = "build/release/schedc"
        if kind == "unit":
            return ["build/release/tests/unit_" + name]
        if kind == "verdicts":
            return [sys.executable, "tests/verdicts.py", "--schedc", schedc]
        if kind == "lists":
            return [sys.executable, "tests/device.py", "--schedc", schedc, "--only", "^lists"]
        path = f"schedules/{name}.sched"
        if not os.path.exists(os.path.join(self.folder, path)):
            path = f"tests/corpus/{name}.sched"
        return [schedc, "test", *(["--on", "model"] if kind == "model" else []), "--quick", path]

    def step(self, step):
        """What a step says that fails, in brief; None if it passes."""
        if step.startswith("unit "):
            self.build("unit_" + step.split()[1])
        if step == "lists":
            self.build("schedc_cli", "schedc_model", "schedc")
        status, output = run(self.command(step), self.folder, SCHEDC_CACHE=os.path.join(self.folder, "cache"))
        if status == 0:
            return None
        return in_brief(output) if status is not None else f"not done in {LIMIT} s"


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def check_edits(breakages):
    """Each text that is to be replaced occurs once."""
    wrong = [f"{b.file}: occurs {n} times, not once: {b.old}" for b in breakages if (n := read(b.file).count(b.old)) != 1]
    if wrong:
        raise SystemExit("\n".join(["breakages that no longer fit the sources:"] + wrong))


def notice(tree, breakage, steps):
    """(step, what it says) of the first that notices; (None, "") if none does."""
    whole = read(breakage.file)
    tree.write(breakage.file, whole.replace(breakage.old, breakage.new))
    tree.build()
    try:
        for step in breakage.first + [s for s in steps if s not in breakage.first]:
            said = tree.step(step)
            if said:
                return step, said
        return None, ""
    finally:
        tree.write(breakage.file, whole)


HEAD = """# Breakages made on purpose

Each is a small edit of the compiler in a copy of the tree, and a step of scripts/test that runs something notices it:
`unit`, a unit test; `lists`, `tests/device.py`; `model`, `schedc test --on model --quick`; `cpu`, `schedc test --quick`.
Other steps may notice, too: the first is named. Written by `tests/broken.py --table tests/broken.md`.

| breakage | file | noticed by | what it says |
| --- | --- | --- | --- |
"""


def write_table(path, rows, head=HEAD):
    with open(path, "w", encoding="utf-8") as out:
        out.write(head)
        for breakage, step, said in rows:
            brief = said.replace("|", "\\|")
            brief = brief[:120] + "…" if len(brief) > 120 else brief
            out.write(f"| {breakage.title} | {breakage.file} | {step or '**nothing**'} | {brief} |\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table")
    parser.add_argument("--fits", action="store_true", help="only: is each breakage's text in its file, once?")
    parser.add_argument("--verbose", action="store_true", help="what noticed says")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    chosen = [b for b in BREAKAGES if not args.names or any(name in b.title for name in args.names)]
    check_edits(chosen)
    if args.fits:
        print(f"{len(chosen)} passed, 0 failed, 0 skipped")
        return 0
    rows, failed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(folder)
        for breakage in chosen:
            step, said = notice(tree, breakage, all_steps())
            rows.append((breakage, step, said))
            failed += step is None
            print(f"{'ok  ' if step else 'FAIL'} {breakage.title}: {step or 'nothing notices'}", flush=True)
            if args.verbose:
                print(f"     {said}", flush=True)
        tree.build()
        for step in sorted({step for _, step, _ in rows if step}):
            said = tree.step(step)
            failed += said is not None
            if said:
                print(f"FAIL unbroken: {step}: {said}", flush=True)
    if args.table:
        write_table(args.table, rows)
    print(f"{len(rows)} breakages\n{len(rows) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
