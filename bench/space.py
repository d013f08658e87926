#!/usr/bin/env python3
"""Measures points of the tuning spaces of attention and GEMM, drawn at random, to hold the cost model against
(bench/predict.py).

  bench/space.py [--schedc build/release/schedc] [--out bench/results/space.json] [--seconds 330] [--only REGEX] [--dry-run]

Points are drawn from the domains below, always the same ones; illegal ones are passed over, and those that spill. Machine
code is made on all cores first. Then chunks of points are measured, a group after the other in turns: each is a call of
`schedc bench`, which verifies its points and measures them in turns with the schedule's default, so that figures of
different chunks can be compared. No chunk is begun that would not be done after so many seconds. The document is written
after each chunk.
"""
import argparse
import itertools
import json
import os
import random
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from calls import AS_WRITTEN, command_line, setting, write

CHUNK = 10       # points of a call, besides the default
CHUNK_TAKES = 35  # seconds, at most, as far as is known before the first
STALE = "schedules/fa3_stale.sched"
PIPELINE = {"stages": [1, 2, 3], "pair": [1, 2], "pingpong": [False, True], "staged": [False, True], "qstages": [1, 2]}


def attention(d, causal, points, **domains):
    heads = 2048 // d
    return {"name": f"fa3_stale d{d} {'causal' if causal else 'full'}", "file": STALE, "case": "paper", "points": points,
            "fixed": {"D": d, "causal": causal}, "dims": {"B": 2, "M": 8192, "N": 8192, "H": heads, "G": heads},
            "domains": {**PIPELINE, "stale": [False, True], **domains}}


def gemm(name, points):
    return {"name": name, "file": f"schedules/{name}.sched", "case": "small", "points": points, "fixed": {},
            "dims": {"M": 8192, "N": 8192, "K": 4096},
            "domains": {"BN": [128, 192, 256], "stages": [2, 3, 4], "T": ["f16", "bf16"]}}


GROUPS = [
    attention(128, False, 50, BN=[80, 96, 112, 128, 144, 160, 176], early=[0, 32, 64, 96]),
    attention(128, True, 40, BN=[80, 96, 112, 128, 144, 160, 176], early=[0, 32, 48, 64]),
    attention(64, False, 20, BM=[128, 192], BN=[80, 96, 128, 160], early=[0, 32, 64]),
    attention(256, False, 20, BN=[80, 96], early=[0, 32]),
    gemm("gemm_pingpong", 10),
    gemm("gemm_cooperative", 10),
]


def words(params):
    return [setting(*p) for p in params.items()]


def with_p(settings):
    return [word for s in settings for word in ("-p", s)]


def succeeds(command):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def draw(schedc, group, more):
    """Legal points of a group, in random order, at most `more` more than are wanted: some may spill."""
    names = list(group["domains"])
    points = [dict(zip(names, values)) for values in itertools.product(*group["domains"].values())]
    random.Random(group["name"]).shuffle(points)

    def legal(point):
        return succeeds([schedc, "build", group["file"], *with_p(words({**group["fixed"], **point})), "--to", "cu", "-o", "-"])

    found, at = [], 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        while at < len(points) and len(found) < group["points"] + more:
            batch = points[at:at + 4 * os.cpu_count()]
            found += [point for point, good in zip(batch, pool.map(legal, batch)) if good]
            at += len(batch)
    return found[:group["points"] + more]


def built(schedc, jobs):
    """Of (group, point), those that build; on all cores."""
    def one(job):
        group, point = job
        settings = words({**group["fixed"], **point})
        return succeeds([schedc, "build", group["file"], *with_p(settings), "--to", "cubin", "-o", "-"])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [job for job, good in zip(jobs, pool.map(one, jobs)) if good]


def chunks_of(groups, jobs):
    """(group, points): those of all groups in turns."""
    of = [[point for g, point in jobs if g is group][:group["points"]] for group in groups]
    for start in range(0, max(map(len, of), default=0), CHUNK):
        for group, points in zip(groups, of):
            if points[start:start + CHUNK]:
                yield group, points[start:start + CHUNK]


def measure(schedc, group, points, dry_run):
    """The document's entry: variants with what was measured, the default first."""
    command = [schedc, "bench", "--case", group["case"], "--format", "json", "--rounds", "3", "--sample", "64"]
    command += with_p(words(group["fixed"])) + [w for d in words(group["dims"]) for w in ("--set", d)]
    for point in [{}, *points]:
        command += [group["file"], *words(point)]
    command += ["--dry-run"] if dry_run else []
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, env=AS_WRITTEN)
    entry = {"group": group["name"], "pass": done.returncode == 0, "command": command}
    got = json.loads(done.stdout) if done.stdout.startswith(("{", "[")) else None
    if isinstance(got, dict):
        entry.update({key: got[key] for key in ("device", "driver", "date", "variants") if key in got})
    else:
        entry["error"] = (done.stdout + done.stderr)[-2000:]
    return entry


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default="build/release/schedc")
    parser.add_argument("--out")
    parser.add_argument("--seconds", type=float, default=330)
    parser.add_argument("--only", default="")
    parser.add_argument("--dry-run", action="store_true")
    args = parser.parse_args()
    begin = time.monotonic()
    groups = [g for g in GROUPS if re.search(args.only, g["name"])]
    jobs = [(g, p) for g in groups for p in draw(args.schedc, g, more=0 if args.dry_run else g["points"] // 3)]
    print(f"{len(jobs)} legal points drawn, after {time.monotonic() - begin:.0f} s", flush=True)
    jobs = jobs if args.dry_run else built(args.schedc, jobs)
    print(f"{len(jobs)} built, after {time.monotonic() - begin:.0f} s", flush=True)
    document = {"command": command_line(), "entries": []}
    measured, longest, failed = 0, CHUNK_TAKES, 0
    for group, points in chunks_of(groups, jobs):
        start = time.monotonic()
        if start - begin + longest > args.seconds:
            print(f"left out: {group['name']}, {len(points)} points", flush=True)
            continue
        entry = measure(args.schedc, group, points, args.dry_run)
        took = time.monotonic() - start
        longest = took if not document["entries"] else max(longest, took)
        document["entries"].append(entry)
        measured, failed = measured + entry["pass"] * len(points), failed + (not entry["pass"])
        print(f"{measured} points, after {time.monotonic() - begin:.0f} s: {group['name']}"
              f"{'' if entry['pass'] else ' FAILED ' + entry.get('error', '')[-300:]}", flush=True)
        write(args.out, document)
    print(f"{measured} points measured, {failed} calls failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
