#!/usr/bin/env python3
"""Fills the cache of machine code, on all cores, for parts of tests/gpu/run: so that the GPU does not wait for NVRTC.

  tests/gpu/fill.py [--schedc build/release/schedc] PART …

What does not build is told by the part that needs it.
"""
import argparse
import glob
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path += [os.path.join(ROOT, "bench"), os.path.join(ROOT, "tests")]
import ablation  # noqa: E402
import adversarial  # noqa: E402
import configs  # noqa: E402
from calls import build, read_points, setting  # noqa: E402

POINTS, FP8_POINTS, MEMORY_POINTS = (os.path.join("bench", name)
                                     for name in ("points.json", "fp8_points.json", "memory_points.json"))


def of_verify(schedc):
    """Every schedule's cases."""
    for path in sorted(glob.glob("schedules/*.sched")):
        for unit, options in configs.shipped(schedc, path):
            yield path, options[1::2], unit


def of_points(*paths):
    """By the Python package."""
    import peers
    store = peers.schedc.Store.shipped()
    for point in (point for path in paths for point in read_points(path, None)):
        params = peers.params_of(peers.open_kernel(point, store)[0])
        yield point["schedule"], [setting(*p) for p in params.items()], *filter(None, [point.get("kernel")])


def of_peers(_):
    return of_points(POINTS, FP8_POINTS)


def of_memory(_):
    return of_points(MEMORY_POINTS)


def of_ablation(_):
    return ablation.configurations(ablation.TABLES)


def of_adversarial(_):
    return [configuration for configuration, _ in adversarial.configurations(read_points(POINTS, None)).values()]


PARTS = {"verify": of_verify, "peers": of_peers, "memory": of_memory, "ablation": of_ablation, "adversarial": of_adversarial}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default="build/release/schedc")
    parser.add_argument("parts", nargs="*", metavar="PART", help="nothing is built for others than waits, " + ", ".join(PARTS))
    args = parser.parse_args()
    os.chdir(ROOT)
    found = {}
    for part in args.parts:
        for file, settings, *unit in PARTS.get(part, lambda _: [])(args.schedc):
            found[file, *unit, *sorted(settings)] = (file, settings, *unit)
    build(args.schedc, found.values())
    waits = list(of_verify(args.schedc)) if "waits" in args.parts else []
    build(args.schedc, waits, "--debug-waits")
    print(f"{len(found) + len(waits)} configurations")


if __name__ == "__main__":
    main()
