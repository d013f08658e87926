#!/usr/bin/env python3
"""Every shipped configuration through NVRTC and ptxas: each kernel and sequence of schedules/ with its defaults, with
the parameters of each of its cases, these in bf16, too, and as the ablation has it, each code once; the defaults with
--debug-waits, too.
No spills (but --debug-waits may), no stack frame, no serialized products, no ignored setmaxnreg; registers at entry,
shared memory and barriers as schedc predicts them, and each role's tiles within the registers that it asks for.
Those of tests/corpus/ go through NVRTC alone, with their defaults, with and without --debug-waits.

  configs.py --schedc build/schedc [-j 2] [--debug-waits] [FILE …]

--debug-waits: all of them with it alone.

Where there is no NVRTC, the configurations are counted as skipped.
"""
import argparse
import glob
import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

MOST_SHARED = 227 * 1024  # bytes that a CTA can have on sm_90
SEAL = 32  # bytes behind machine code: what it is of (runtime/cuda/seal.c)
MISSING = 3               # exit code: the machine lacks something


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, encoding="utf-8")


def info(schedc, path, *options):
    done = run(schedc, "info", path, *options, "--format", "json")
    if done.returncode:
        raise RuntimeError(f"{path} {options}: {done.stderr or done.stdout}")
    return json.loads(done.stdout)[0]


def units(path):
    """(name, text, launched) of each kernel and sequence of a schedule; launched: a kernel that a sequence launches."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"//[^\n]*", "", file.read())
    starts = list(re.finditer(r"^(kernel|sequence)\s+(\w+)", text, re.M))
    found = [(this.group(1), this.group(2), text[this.start() : after.start() if after else len(text)])
             for this, after in zip(starts, starts[1:] + [None])]
    launched = {name for kind, _, body in found if kind == "sequence" for name in re.findall(r"^\s*(\w+)(?: if [^\n]*)?\s*$", body, re.M)}
    return [(name, body, kind == "kernel" and name in launched) for kind, name, body in found]


def choices(case, params):
    """The parameters that a case sets, in every combination of its `in { … }`."""
    bound = re.findall(r"(\w+)\s*(?:=|\bin\b)\s*(\{[^}]*\}|\[[^\]]*\]|[^,\s}]+)", case)
    names = [name for name, _ in bound if name in params]
    values = [re.findall(r"[^\s,{}]+", value) for name, value in bound if name in params]
    for combination in itertools.product(*values):
        yield tuple(zip(names, combination))


def settings(schedc, path, kernel, text):
    """Options for schedc, each once: the defaults, then the parameters of each case."""
    params = {p["name"] for p in info(schedc, path, kernel)["parameters"]}
    found = [()]
    for case in re.findall(r"\bcase\s+\w+\s*\{((?:[^{}]|\{[^{}]*\})*)\}", text):
        found += choices(case, params)
    return [[word for name, value in given for word in ("-p", f"{name}={value}")] for given in dict.fromkeys(found)]


def shipped(schedc, path):
    """(kernel, options) of what a caller may launch."""
    return [(kernel, options) for kernel, text, launched in units(path) if not launched
            for options in settings(schedc, path, kernel, text)]


def in_bf16(schedc, path, kernel, options):
    """The same with bf16, where the kernel has it and the options name no type."""
    domains = {p["name"]: p.get("domain") or [] for p in info(schedc, path, kernel)["parameters"]}
    named = any(word.startswith("T=") for word in options)
    return [] if named or "bf16" not in domains.get("T", []) else [(path, kernel, ["-p", "T=bf16", *options])]


def of_ablation(root):
    """Its variants, as (file, kernel, options)."""
    sys.path.insert(0, os.path.join(root, "bench"))
    os.chdir(root)
    import ablation
    return [(os.path.join(root, path), os.path.basename(path).removesuffix(".sched"), [word for s in settings for word in ("-p", s)])
            for path, settings in ablation.configurations(ablation.TABLES)]


def of_corpus(root):
    for path in sorted(glob.glob(os.path.join(root, "tests", "corpus", "*.sched"))):
        for kernel, _, launched in units(path):
            if not launched:
                yield from ((path, kernel, [], debug, ".ptx") for debug in ([], ["--debug-waits"]))


def placed(schedc, path, kernel, options):
    """Bytes of shared memory and named barriers. (`info` would take the parameters of the first case.)"""
    text = run(schedc, "check", path, kernel, *options, "--emit=place").stdout
    return tuple(int(re.search(what + r": (\d+) of", text).group(1)) for what in ("shared memory", "named barriers"))


def judge(built, known, place, debug):
    """What is not as it should be. Of a sequence, `built` has the largest figures of its kernels."""
    if not debug and (built["stack_bytes"] or built["spill_store_bytes"] or built["spill_load_bytes"]):
        yield "spills"
    if built["shared_bytes"] > MOST_SHARED:
        yield f"{built['shared_bytes']} bytes of shared memory"
    if not place:
        return
    shared, named = place
    if debug and named > 1:  # mbarriers stand in for them
        shared = (shared + 7) // 8 * 8 + 8 * named
    if built["registers"] > built["entry_registers"]:
        yield f"{built['registers']} registers at entry, predicted {built['entry_registers']}"
    if any(r["registers"] for r in known["roles"]) and built["registers"] != built["entry_registers"]:
        yield f"{built['registers']} registers at entry where setmaxnreg needs {built['entry_registers']}"
    if built["static_shared_bytes"] or built["shared_bytes"] != shared:
        yield f"{built['static_shared_bytes']} + {built['shared_bytes']} bytes of shared memory, predicted {shared}"
    # A barrier whose number is computed (one an instance) counts as all 16; in clusters nobody meets at number 0.
    if built["barriers"] > named and built["barriers"] != 16:
        yield f"{built['barriers']} named barriers, predicted {named}"
    for role in known["roles"]:
        room = role["registers"] or built["entry_registers"]
        if role["registers_of_tiles"] > room:
            yield f"the tiles of role {role['name']} take {role['registers_of_tiles']} registers of {room}"


def build(schedc, folder, job):
    path, kernel, options, debug, form = job
    out = os.path.join(folder, hashlib.sha256(repr(job).encode()).hexdigest() + form)
    done = run(schedc, "build", path, kernel, *options, *debug, "--format", "json", "-o", out)
    if done.returncode == MISSING:
        return job, None, None
    try:
        built = json.loads(done.stdout)
    except ValueError:
        return job, None, [done.stdout + done.stderr]
    wrong = [d["code"] + ": " + d["text"] for d in built["diagnostics"] if not debug or d["code"] != "G.spill"]
    if form == ".ptx":
        return job, built, wrong
    known = info(schedc, path, kernel, *options)
    place = None if known["kind"] == "sequence" else placed(schedc, path, kernel, options)
    wrong += judge(built, known, place, debug)
    if not wrong and os.path.getsize(out) != built["code_bytes"] + SEAL:
        wrong.append("the file is not the code")
    return job, built, wrong


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", default=os.path.join(root, "build", "schedc"))
    parser.add_argument("-j", type=int, default=2)
    parser.add_argument("--debug-waits", action="store_true")
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()

    args.schedc = os.path.abspath(args.schedc)
    files = args.files or sorted(glob.glob(os.path.join(root, "schedules", "*.sched")))
    found = [(path, *of) for path in files for of in shipped(args.schedc, path)]
    found += [other for of in found for other in in_bf16(args.schedc, *of)]
    jobs, seen, waits = [], set(), ["--debug-waits"]
    for path, kernel, options in found if args.files else found + of_ablation(root):
        text = run(args.schedc, "build", path, kernel, *options, "--to", "cu", "-o", "-")
        if text.returncode == 0 and text.stdout not in seen:
            seen.add(text.stdout)
            jobs.append((path, kernel, options, waits if args.debug_waits else [], ".cubin"))
            if not options and not args.debug_waits:
                jobs.append((path, kernel, options, waits, ".cubin"))
        elif text.returncode:
            print(f"{path} {kernel} {options}: {text.stderr}")
            return 1
    if not args.files:
        jobs += of_corpus(root)
    passed = failed = skipped = 0
    slowest, start = (0, ""), time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.j) as pool:
        os.environ.setdefault("SCHEDC_CACHE", os.path.join(folder, "cache"))  # nobody else's machine code
        for (_, kernel, options, debug, _), built, wrong in pool.map(lambda job: build(args.schedc, folder, job), jobs):
            name = " ".join([kernel] + options[1::2] + debug)
            if wrong is None:
                skipped += 1
                continue
            passed, failed = passed + (not wrong), failed + bool(wrong)
            for text in wrong:
                print(f"FAIL {name}: {text}")
            if built:
                slowest = max(slowest, (built["seconds"], name))
    print(f"NVRTC: {time.monotonic() - start:.0f} s in all, slowest {slowest[1] or 'none'} {slowest[0]:.2f} s")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not jobs else 0


if __name__ == "__main__":
    sys.exit(main())
