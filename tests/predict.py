#!/usr/bin/env python3
"""The cost model on every correct schedule of the repository, at several lengths: no timeline stops before its end, and
what is longer takes no less time.

  predict.py [--library build/release/libschedc.so]

A timeline counts arrivals, bytes and turns as the hardware does, without the prover: it stops where roles wait for each
other for ever, so that it would stop on correct schedules if it counted wrongly.
"""
import argparse
import ctypes
import glob
import os
import sys

from libschedc import Failed, Kernel, Library

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ("schedules", "tests/corpus", "tests/unusual", "tests/gpu")
LENGTHS = (0, 1, 64, 300, 1024, 4096)
FEW = {"B": 2, "H": 4, "G": 4}  # dimensions that are never long
SHORTER = 0.98  # of the time of a shorter launch: the last wave may be fuller
WHOLE = 64      # of which a length is a multiple: a part of a tile may be masked, and then take longer than a whole one


def dims_of(library, kernel):
    library.so.schedc_dim_at.restype = ctypes.c_char_p
    library.so.schedc_dim_at.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    names = []
    while (name := library.so.schedc_dim_at(kernel.handle, len(names))):
        names.append(name.decode())
    return names


def wrong_of(library, path):
    """(good predictions, what is wrong) of a schedule. Lengths that it does not take, and data that is missing, are no
    fault."""
    kernel, before, made, wrong = Kernel(library, path), 0, 0, []
    names = dims_of(library, kernel)
    try:
        for i in range(len(kernel.tensors)):
            kernel.shape(i, dict.fromkeys(names, 1))
    except Failed:  # a scalar without a default says an extent
        return 0, []
    for length in LENGTHS:
        try:
            ms = kernel.predict({name: min(length, FEW.get(name, length)) for name in names}).ms
        except Failed as failed:
            if "[T." not in str(failed):
                wrong.append(f"{length}: {failed}")
            continue
        if ms < SHORTER * before:
            wrong.append(f"{length}: {ms:.5f} ms, a shorter one {before:.5f}")
        made += ms >= SHORTER * before
        before = before if length % WHOLE else ms
    kernel.close()
    return made, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default=os.path.join(ROOT, "build/release/libschedc.so"))
    args = parser.parse_args()
    os.chdir(ROOT)
    library, passed, failed = Library(args.library), 0, 0
    for path in sorted(path for folder in FOLDERS for path in glob.glob(f"{folder}/*.sched")):
        try:
            made, wrong = wrong_of(library, path)
        except Failed:
            continue  # its defaults are no legal point
        passed, failed = passed + made, failed + len(wrong)
        for line in wrong:
            print(f"FAIL {path}: {line}")
    if passed < 300:
        print(f"FAIL only {passed} predictions were made")
        failed += 1
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
