#!/usr/bin/env python3
"""The model of a GPU notices what is missing: of the emitted text of each schedule one synchronising call at a time is left
out (a barrier, an arrival, expected bytes, a fence, a commit, a wait, a meeting of CTA or cluster, a hand-over of registers),
and the kernel is run on the model. Each must be noticed, or stand in tests/dropped.expected with the reason why nothing is
wrong without it. Needs the host's C++ compiler, and nothing of CUDA.

  dropped.py --schedc build/release/schedc [-j 2] [--every N] [--verbose] [--table FILE] [NAME …]

NAME: schedules ("gemm"); without it all. --table writes the table of tests/dropped.md.
"""
import argparse
import collections
import fnmatch
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpu"))
from hang import make_editor  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
LIMIT = 60  # seconds a run may take

# Schedule, the unit that is run, its kernels, the options that its text depends on, and dimensions: enough tiles for several
# rounds of each ring and several tiles a CTA, on two multiprocessors; then what other branches need.
RUNS = [
    ("copy", "copy", ["copy"], "--case small", ["M=320 N=512"]),
    ("softmax_rows", "softmax_rows", ["softmax_rows"], "--case small -p W=4 -p BN=128 -p stages=6",
     ["M=1000 N=1100", "M=1000 N=100"]),
    ("gemm", "gemm", ["gemm"], "--case small", ["M=128 N=256 K=640"]),
    ("gemm_roles", "gemm_roles", ["gemm_roles"], "--case small", ["K=704"]),
    ("gemm_pingpong", "gemm_pingpong", ["gemm_pingpong"], "--case small", ["M=400 N=704 K=448"]),
    ("gemm_cooperative", "gemm_cooperative", ["gemm_cooperative"], "--case small", ["M=300 N=1104 K=448"]),
    ("gemm_bias_gelu", "gemm_bias_gelu", ["gemm_bias_gelu"], "--case small", ["M=320 N=704 K=576"]),
    ("mlp", "mlp", ["mlp"], "--case small", ["M=400 F=900"]),
    ("fa3_alg1", "fa3_alg1", ["fa3_alg1"], "--case small -p D=64", ["M=520 N=1000", "M=700 N=0"]),
    ("fa3_alone", "fa3_alone", ["fa3_alone"], "--case small -p D=64", ["M=520 N=900", "M=700 N=0"]),
    ("fa3_fwd", "fa3_fwd", ["fa3_fwd"], "--case small -p D=64", ["M=520 N=1100", "M=900 N=100", "M=700 N=0"]),
    ("fa3_stage3", "fa3_stage3", ["fa3_stage3"], "--case small -p D=64",
     ["M=300 N=1000", "M=900 N=600", "M=700 N=384", "M=500 N=250", "M=500 N=100", "M=700 N=0"]),
    ("fa3_stale", "fa3_stale", ["fa3_stale"], "--case small --inputs ramp-down", ["M=520 N=900", "M=900 N=100", "M=700 N=0"]),
    ("fa3_stale", "fa3_stale", ["fa3_stale"], "--case causal -p pair=2 -p BN=80 --inputs ramp",
     ["M=700 N=600", "M=500 N=300 H=4", "M=1000 N=100", "M=700 N=0"]),
    ("fa_varlen", "fa_varlen", ["fa_varlen"], "", ["case=tiles", "case=long"]),
    ("gqa_fwd_2wg", "gqa_fwd_2wg", ["gqa_fwd_2wg"], "--case small -p D=64", ["M=200 N=900", "M=300 N=70", "M=300 N=0"]),
    ("fa3_bwd", "fa3_bwd", ["prepare", "backward", "convert", "convert_keys"], "--case small -p D=64", ["M=900 N=200", "M=0 N=500"]),
]
CALLS = ("cta_sync cluster_sync warp_sync bar_sync bar_arrive ring_init mbar_init_fence mbar_arrive_cta mbar_arrive mbar_expect_only "
         "mbar_expect mbar_wait fence_async_all fence_async wgmma_fence wgmma_commit wgmma_wait tma_commit tma_wait_read tma_wait "
         "turn_take turn_pass setmaxnreg_inc setmaxnreg_dec grid_wait").split()
CALL = re.compile(r"\bsc_(" + "|".join(CALLS) + r")(<\d+>)?\(.*\);")
POLICIES = [("early", 0), ("late", 0), ("random", 1)]


def sets(dims):
    """Options of dimensions, as above; case=NAME is a case."""
    return [word for dim in dims.split() for word in (("--case", dim[5:]) if dim.startswith("case=") else ("--set", dim))]

def called(call):
    return re.match(r"sc_(\w+)", call).group(1)


def run(command, **environment):
    return subprocess.run(command, cwd=ROOT, env=dict(os.environ, **environment), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=LIMIT, encoding="utf-8")


def mutants(judge, runs):
    """(run, kernel, line in the text, the call, how often it came before in the kernel's text)."""
    for number in runs:
        rows = judge.text(number).split("\n")
        for kernel in RUNS[number][2]:
            seen = collections.Counter()
            start = next(i for i, row in enumerate(rows) if row.startswith(kernel + "("))
            for at in range(start, rows.index("}", start)):
                found = CALL.search(rows[at])
                if not found or rows[at].lstrip().startswith(("#", "//")):
                    continue
                call = re.sub(r"\s*//.*", "", found.group(0))
                seen[call] += 1
                yield number, kernel, at + 1, call, seen[call]


class Judge:
    def __init__(self, args, folder, editor):
        self.args, self.folder, self.editor = args, folder, editor

    def run(self, number, dims, policy, **environment):
        name, unit, _, words, _ = RUNS[number]
        return run([self.args.schedc, "run", f"schedules/{name}.sched", unit, *words.split(), *sets(dims), "--on", "cuda",
                    "--sample", "64"], SCHEDC_DRIVER=self.args.model, SCHEDC_MODEL="policy=%s,seed=%d,sms=2" % policy,
                   **environment)

    def edited(self, log, number, script):
        return dict(SCHEDC_NVRTC=self.editor, EDIT_NVRTC=script, EDIT_NVRTC_LOG=log,
                    EDIT_NVRTC_NAME=RUNS[number][1] + ".cu", SCHEDC_CACHE=log + ".cache")

    def text(self, number):
        """What NVRTC is given, a sequence's kernels in one: a copy of it is kept on its way."""
        path = os.path.join(self.folder, f"{number}.cu")
        done = self.run(number, RUNS[number][4][0], POLICIES[0], **self.edited(path + ".log", number, f"w {path}"))
        if done.returncode:
            sys.exit(done.stdout)
        with open(path, encoding="utf-8") as text:
            return text.read()

    def untouched(self, number):
        """As emitted, all is well."""
        name, _, _, words, all_dims = RUNS[number]
        for policy, dims in ((p, d) for p in POLICIES for d in all_dims):
            done = self.run(number, dims, policy, SCHEDC_NVRTC=self.args.model)
            if done.returncode:
                yield f"{name} {words} {dims} {policy}: {done.stdout[-500:]}"

    def verdict(self, mutant):
        """What the first run that notices says; or "survived", or "not edited"."""
        number, kernel, line, call, nth = mutant
        log = os.path.join(self.folder, f"{number}-{kernel}-{line}")
        environment = self.edited(log, number, f"{line}s/\\bsc_{called(call)}(<[0-9]+>)?\\(.*\\);/;/")
        for policy, dims in ((p, d) for p in POLICIES for d in RUNS[number][4]):
            try:
                done = self.run(number, dims, policy, **environment)
            except subprocess.TimeoutExpired:
                return "hung", policy[0]
            if not os.path.exists(log) or not os.path.getsize(log):
                return "not edited", done.stdout[-300:]
            rule = re.search(r"error\[G\.model\].*\((\w+)\)", done.stdout)
            if rule:
                return "found " + rule.group(1), policy[0]
            if done.returncode:
                return ("wrong" if "FAIL" in done.stdout else "refused"), policy[0] + ": " + done.stdout[-200:]
        return "survived", ""


def read_expected(path):
    """{pattern of a mutant's name: how many have met it}; each has its reason beside it."""
    known = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                mutant, _, reason = line.partition("  # ")
                if not reason.strip():
                    sys.exit(f"{path}: a mutant without a reason: {line.strip()}")
                known[mutant.strip()] = 0
    return known


def expected(known, name):
    met = [pattern for pattern in known if fnmatch.fnmatchcase(name, pattern)]
    for pattern in met:
        known[pattern] += 1
    return bool(met)


def name_of(mutant):
    """Schedule, kernel, call, the how manieth of its kind; the case, where a schedule is run twice."""
    number, kernel, _, call, nth = mutant
    twice = [r[0] for r in RUNS].count(RUNS[number][0]) > 1
    return f"{RUNS[number][0]} {kernel} {call} {nth}" + (f" ({RUNS[number][3].split()[1]})" if twice else "")


def write_table(path, table):
    kinds = [c for c in CALLS if any(c in row for row in table.values())]
    verdicts = sorted({v for row in table.values() for kind in row.values() for v in kind})
    with open(path, "w", encoding="utf-8") as out:
        out.write("# One synchronising call less\n\nWhat the model of a GPU (model/) says when one call of the emitted text of a schedule is left out: the rule that is\n"
                  "broken (model/README.md lists them), `wrong` where only the result shows it, `survived` where nothing does\n"
                  "(tests/dropped.expected has the reasons). Written by `tests/dropped.py --table tests/dropped.md`.\n\n")
        out.write("| call | " + " | ".join(verdicts) + " | all |\n| --- |" + " --- |" * (len(verdicts) + 1) + "\n")
        total = collections.Counter()
        for kind in kinds:
            row = sum((t[kind] for t in table.values() if kind in t), collections.Counter())
            total += row
            out.write(f"| `{kind}` | " + " | ".join(str(row[v] or "") for v in verdicts) + f" | {sum(row.values())} |\n")
        out.write("| all | " + " | ".join(str(total[v]) for v in verdicts) + f" | {sum(total.values())} |\n\n")
        out.write("| schedule | noticed | survived |\n| --- | --- | --- |\n")
        for name, kinds_of in table.items():
            row = sum(kinds_of.values(), collections.Counter())
            out.write(f"| {name} | {sum(row.values()) - row['survived']} | {row['survived']} |\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "release", "schedc"))
    parser.add_argument("-j", type=int, default=2)
    parser.add_argument("--verbose", action="store_true", help="one line a mutant")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="no more than every Nth call")
    parser.add_argument("--table", metavar="FILE")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    args.schedc = os.path.abspath(args.schedc)
    args.model = os.path.join(os.path.dirname(args.schedc), "libschedc_model.so")
    runs = [i for i, r in enumerate(RUNS) if not args.names or r[0] in args.names]
    known = read_expected(os.path.join(HERE, "dropped.expected"))
    table = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.j) as pool:
        judge = Judge(args, folder, make_editor(folder, args.model))
        for wrong in (w for number in runs for w in judge.untouched(number)):
            print(f"FAIL as emitted: {wrong}")
            failed += 1
        found = list(mutants(judge, runs))[:: args.every]
        for mutant, (verdict, detail) in zip(found, pool.map(judge.verdict, found)):
            name = name_of(mutant)
            table[name.split()[0]][called(mutant[3])][verdict] += 1
            good = verdict.startswith(("found", "wrong")) or (verdict == "survived" and expected(known, name))
            passed, failed = passed + bool(good), failed + (not good)
            if args.verbose or not good:
                print(f"{'ok  ' if good else 'FAIL'} {verdict:12} {name}  {detail if not good else ''}", flush=True)
    for pattern in (k for k, met in known.items() if not met and not args.names and args.every == 1):
        print(f"FAIL dropped.expected: none survives of {pattern}")
        failed += 1
    if args.table:
        write_table(args.table, table)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
