#!/usr/bin/env python3
"""Kernels that hang, and what --debug-waits says of them.

Schedules that pass the checks do not hang, so the emitted code is edited on its way to NVRTC (edit_nvrtc.c): one
arrival, one pass or one draw of a kernel of waits.sched is left out. The run must end by itself within seconds, with
exit code 1 and reports that name the role, the barrier, its stage and generation, and the line of the schedule; and
with no other reports.

  hang.py --schedc build/release/schedc [NAME …]   on a Hopper GPU
  hang.py --schedc build/release/schedc --model    on the model of one, which is beside schedc
  hang.py --schedc build/release/schedc --build    without either: the edits fit the code, and it builds
"""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MISSING = 3   # exit code: the machine lacks something
LIMIT = 30    # seconds a run may take
FILE = "tests/corpus/waits.sched"
FILLS = "K=448"   # 7 fills of each ring: 0 to 6
DRAWS = "M=102400"  # a dozen tiles and more a CTA
MEETINGS = "M=33792"  # 4 tiles a CTA, on 132 multiprocessors

# Name, kernel, dimensions, the edit, and the reports: role and CTA, what it waited for, the text of its line.
CASES = [
    # The producer does not arrive on A's full barrier for fill 3.
    ("full barrier", "turns", FILLS,
     r"s/sc_mbar_expect\(smem \+ a_full \+ 8 \* a_fill, a_bytes\);/if (t != 3) &/",
     [(r"math\[0\]", 0, "for fill 3 of 'a': full barrier, stage 1, generation 1", "wait a, b"),
      (r"math\[1\]", 0, "for fill 3 of 'a': full barrier, stage 1, generation 1", "wait a, b"),
      ("load", 0, "for the release of fill 3 of 'a': empty barrier, stage 1, generation 1", "a <- X[x*128..")]),
    # One of two warpgroups does not release fill 2 of A.
    ("empty barrier", "turns", FILLS,
     r"s/if \(thread == 0\)( sc_mbar_arrive\(smem \+ a_empty \+ 8 \* a_held\);)/"
     r"if (thread == 0 \&\& (instance != 1 || t != 2))\1/",
     [("load", 0, "for the release of fill 2 of 'a': empty barrier, stage 0, generation 1", "a <- X[x*128.."),
      (r"math\[0\]", 0, "for fill 4 of 'a': full barrier, stage 0, generation 2", "wait a, b"),
      (r"math\[1\]", 0, "for fill 4 of 'a': full barrier, stage 0, generation 2", "wait a, b")]),
    # One warpgroup does not pass its fourth turn on.
    ("turn", "turns", FILLS, r"/pass 'go' on/s/sc_mbar_arrive/if (instance || t != 3) &/",
     [(r"math\[1\]", 0, "for its turn 'go': named barrier 2, generation 3", "acquire go"),
      (r"math\[0\]", 0, "for its turn 'go': named barrier 1, generation 4", "acquire go"),
      ("load", 0, "for the release of fill 3 of 'a': empty barrier, stage 1, generation 1", "a <- X[x*128..")]),
    # The third tile that a CTA draws is not announced.
    ("drawn tile", "drawn", DRAWS,
     r"s/^( *)(sc_mbar_arrive\(smem \+ slot_full \+ 8 \* slot\);)/\1if (slot || slot_generation != 1) \2/",
     [("math", None, "for tile 2 that this CTA draws: full barrier of the next tile, slot 0, generation 1", "role math"),
      ("load", None, "for tile 2 that this CTA draws to be read by all roles: empty barrier of the next tile, slot 0, "
       "generation 1", "role load")]),
    # … or not seen to have been read by one warp.
    ("drawn tile read", "drawn", DRAWS,
     r"s/if \(lane == 0\)( sc_mbar_arrive\(smem \+ slot_empty \+ 8 \* slot\);)/"
     r"if (lane == 0 \&\& (warp || slot || slot_generation != 1))\1/",
     [("load", None, "for tile 2 that this CTA draws to be read by all roles: empty barrier of the next tile, slot 0, "
       "generation 1", "role load"),
      ("math", None, "for fill 4 of 'r': full barrier, stage 0, generation 2", "wait r")]),
    # A CTA of a pair does not tell the other that it has released fill 2 of B.
    ("cluster", "pair", FILLS,
     r"s/sc_mbar_arrive_cta\(smem \+ b_empty \+ 8 \* b_held, 1\);/if (cta_rank || t != 2) &/",
     [("load", 1, "for the release of fill 2 of 'b': empty barrier, stage 0, generation 1", "b <- W[0.., t*64.."),
      ("load", 0, "for the release of fill 4 of 'a': empty barrier, stage 0, generation 2", "a <- X[x*64.."),
      ("math", None, "for fill 4 of 'b': full barrier, stage 0, generation 2", "wait a, b")]),
    # The second CTA does not pass its turn on.
    ("turn over CTAs", "ordered", "M=3", r"/pass 'go' on/s/sc_turn_pass/if (x_tile != 1) &/",
     [("all", 2, "for turn 2 of 'go', which was passed on 1 time", "acquire go")]),
    # A warp does not come to the third meeting.
    ("meeting", "scaled", MEETINGS, r"s/^( *)(sc_bar_sync_for\()/\1if (blockIdx.x || warp != 3 || met != 2) \2/",
     [("math", 0, "for the other warps of its warpgroup: named barrier 1, generation 2", "async y[i,j] = r[i,k]"),
      ("load", 0, "for the release of fill 2 of 'w': empty barrier, stage 0, generation 2", "w <- W[0.., 0..]")]),
]
UNTOUCHED = ("untouched",)
MODEL = "sms=8"  # of which each draws so many tiles, too


def find_nvrtc():
    """Where schedc finds it, too."""
    if os.environ.get("SCHEDC_NVRTC"):
        return os.environ["SCHEDC_NVRTC"]
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    folders += [os.path.join(os.environ[v], "lib64") for v in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(v)]
    for folder in filter(None, folders + ["/usr/local/cuda/lib64"]):
        for found in sorted(glob.glob(os.path.join(folder, "libnvrtc.so.1[23]"))):
            return found
    return None


def make_editor(folder, nvrtc):
    out = os.path.join(folder, "libedit_nvrtc.so")
    nvrtc = os.path.realpath(nvrtc)
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", "-o", out, os.path.join(HERE, "edit_nvrtc.c"),
                    "-Wl,--no-as-needed", nvrtc, "-Wl,-rpath," + os.path.dirname(nvrtc), "-ldl"],
                   check=True, timeout=60)
    return out


def line_of(kernel, text):
    """The only line of the kernel that has the text."""
    with open(os.path.join(ROOT, FILE), encoding="utf-8") as file:
        lines = file.read().splitlines()
    start = lines.index(f"kernel {kernel} {{")
    found = [at for at, line in enumerate(lines[start : lines.index("}", start)], start + 1) if text in line]
    assert len(found) == 1, f"{kernel}: '{text}' is in {len(found)} lines"
    return found[0]


class Hang:
    def __init__(self, args, folder, editor):
        self.args, self.folder, self.editor = args, folder, editor

    def run(self, case, *command):
        name, _, _, script, _ = case
        log = os.path.join(self.folder, name.replace(" ", "-") + ".edited")
        environment = dict(os.environ, SCHEDC_NVRTC=self.editor, EDIT_NVRTC=script, EDIT_NVRTC_LOG=log)
        done = subprocess.run([self.args.schedc, *command, "--debug-waits", "--no-cache", "--format", "json"], cwd=ROOT,
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT,
                              encoding="utf-8")
        return done, os.path.getsize(log) > 0 if os.path.exists(log) else False

    def build(self, case):
        name, kernel, _, _, expected = case
        done, edited = self.run(case, "build", FILE, kernel, "-o", os.path.join(self.folder, name + ".cubin"))
        if not edited:
            yield "the edit changes nothing: the emitted code is another"
        if done.returncode:
            yield done.stdout + done.stderr
        for _, _, _, text in expected:
            line_of(kernel, text)

    def hang(self, case):
        _, kernel, dimension, _, expected = case
        done, edited = self.run(case, "run", FILE, kernel, "--case", "small", "--set", dimension, "--on", "cuda")
        if done.returncode == MISSING:
            raise OSError(done.stderr)
        if not edited:
            yield "the edit changes nothing: the emitted code is another"
        if done.returncode != 1:
            yield f"exit code {done.returncode}, not 1: {done.stdout}{done.stderr}"
        try:
            reports = [r for r in json.loads(done.stdout)["diagnostics"] if r["severity"] == "error"]
        except ValueError:
            reports = []
        for r in reports:
            print(f"    {r['file']}:{r['range']['line']}: {r['code']}: {r['text']}")
        for role, cta, what, text in expected:
            where = rf"\(CTA {r'[0-9]+' if cta is None else cta}, thread [0-9]+\)"
            told = re.compile(f"'{role}' {where} waited in vain {re.escape(what)}")
            line = line_of(kernel, text)
            fit = [r for r in reports if told.fullmatch(r["text"]) and r["range"]["line"] == line]
            if len(fit) != 1 or fit[0]["code"] != "G.wait":
                yield f"{len(fit)} reports at line {line}: {told.pattern}"
        if len(reports) != len(expected):
            yield f"{len(reports)} reports, not {len(expected)}"

    def untouched(self):
        """As emitted, the same kernels end and are right."""
        done = subprocess.run([self.args.schedc, "test", FILE, "--on", "cuda", "--quick", "--debug-waits"], cwd=ROOT,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=2 * LIMIT, encoding="utf-8")
        if done.returncode == MISSING:
            raise OSError(done.stdout)
        if done.returncode:
            yield done.stdout

    def judge(self, case):
        begin = time.monotonic()
        try:
            check = self.untouched() if case is UNTOUCHED else self.build(case) if self.args.build else self.hang(case)
            wrong = list(check)
        except subprocess.TimeoutExpired as over:
            wrong = [f"it hangs: {over.timeout} s are over"]
        except OSError as missing:
            return case[0], missing, 0
        return case[0], wrong, time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "release", "schedc"))
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--model", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    args.schedc = os.path.abspath(args.schedc)
    cases = [c for c in CASES + [UNTOUCHED] * (not args.build) if not args.names or c[0] in args.names]
    if args.model:
        model = os.path.join(os.path.dirname(args.schedc), "libschedc_model.so")
        os.environ.update(SCHEDC_DRIVER=model, SCHEDC_NVRTC=model, SCHEDC_MODEL=MODEL)
    nvrtc = find_nvrtc()
    if not nvrtc:
        print(f"no NVRTC\n0 passed, 0 failed, {len(cases)} skipped")
        return 0
    passed = failed = skipped = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        hang = Hang(args, folder, make_editor(folder, nvrtc))
        for name, wrong, seconds in pool.map(hang.judge, cases):
            if isinstance(wrong, OSError):
                print(f"skipped {name}: {wrong}")
                skipped += 1
                continue
            passed, failed = passed + (not wrong), failed + bool(wrong)
            print(f"{'FAIL' if wrong else 'ok  '} {name}: {seconds:.1f} s")
            for text in wrong:
                print("    " + text)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
