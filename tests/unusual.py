#!/usr/bin/env python3
"""Correct schedules of unusual kinds (tests/unusual): how many does schedc accept?

`schedc check` accepts each, but for those of unusual/refused.txt, which it refuses with the code
that stands there: they are correct as well, and what is refused too much is counted. It proves
each, but for those of unusual/open.txt, which end as checked or incomplete. `schedc test --quick`
passes each that is accepted. With `--on nvrtc` each is built instead: the PTX that NVRTC
makes of it is that of the plan, and ptxas takes it, without spills and with products in flight; of
those of unusual/serial.txt ptxas says that it adds a wait. (Without NVRTC all are skipped.)

  unusual.py --schedc build/schedc [--on cpu|model|nvrtc] [NAME …]
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "unusual")
MISSING = 3  # exit code: the machine lacks something


class Skipped(Exception):
    """There is no NVRTC."""


def run(*command):
    done = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=120)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def read_list(listed):
    """Of lines `name … # reason`: {name: what follows it}."""
    names = {}
    with open(os.path.join(HERE, listed), encoding="utf-8") as file:
        for line in file:
            entry, _, reason = line.partition("#")
            if entry.strip():
                name, *rest = entry.split()
                assert reason.strip(), f"{listed}: {name} has no reason"
                names[name] = " ".join(rest)
    return names


def tried(schedc, name, on, serial):
    """What a run, or a build, of a schedule says if it fails; else None. serial: ptxas adds a wait."""
    if on != "nvrtc":
        status, text = run(schedc, "test", "--quick", "--on", on, name + ".sched")
        return text if status else None
    with tempfile.TemporaryDirectory() as folder:
        status, text = run(schedc, "build", name + ".sched", "--no-cache",
                           "-o", os.path.join(folder, name + ".cubin"))
    if status == MISSING:
        raise Skipped(text)
    if serial:
        return None if "error[G.serial]" in text else "builds, to be struck from serial.txt"
    return text if status else None


def failures(schedc, name, on, code, left_open, serial):
    """What is wrong with a schedule: code is that of its refusal, None if it is to be accepted."""
    status, text = run(schedc, "check", name + ".sched")
    got = re.search(r"error\[([\w.-]+)\]", text)
    got = got.group(1) if got else None if status == 0 else f"exit status {status}"
    if got != code:
        yield f"{name}: {got or 'accepted'}, not {code or 'accepted'}\n{text}"
    elif not code:
        if (f"{name}: proved for all trip counts" in text) == left_open:
            yield f"{name}: {'proved, to be struck from open.txt' if left_open else 'not proved'}\n{text}"
        text = tried(schedc, name, on, serial)
        if text is not None:
            yield f"{name}: fails\n{text}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", required=True)
    parser.add_argument("--on", choices=["cpu", "model", "nvrtc"], default="cpu")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    schedc = os.path.abspath(args.schedc)
    refused, left_open, serial = (read_list(f"{which}.txt") for which in ("refused", "open", "serial"))
    there = sorted(file[:-6] for file in os.listdir(HERE) if file.endswith(".sched"))
    failed = 0
    for name in sorted((set(refused) | set(left_open) | set(serial)) - set(there)):
        failed += 1
        print(f"refused.txt, open.txt, serial.txt: there is no {name}.sched")
    names = args.names or there
    for name in names:
        try:
            found = list(failures(schedc, name, args.on, refused.get(name), name in left_open, name in serial))
        except Skipped as missing:
            print(f"{missing}\n0 passed, 0 failed, {len(names)} skipped")
            return 0
        failed += bool(found)
        print("\n".join(found), end="\n" if found else "")
    false = sum(name in refused for name in names)
    print(f"{len(names)} correct schedules: {len(names) - false} to be accepted, {false} refused")
    print(f"{len(names) - failed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
