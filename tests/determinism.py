#!/usr/bin/env python3
"""The same input gives the same bytes: every stage of every schedule, twice, in other locales and directories.

  determinism.py --schedc build/schedc
"""
import argparse
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def emit(schedc, path, stage, cwd, **environment):
    command = [schedc, "info", path] if stage == "info" else [schedc, "check", f"--emit={stage}", path]
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **environment}, stdout=subprocess.PIPE, timeout=60)
    return done.returncode, done.stdout


def stages(schedc):
    text = subprocess.run([schedc, "check", "--help"], stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout
    return [line.split()[0] for line in text.split("stages:\n")[1].splitlines()] + ["info"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", required=True)
    schedc = os.path.abspath(parser.parse_args().schedc)
    folder = os.path.join(ROOT, "schedules")
    passed = failed = 0
    with tempfile.TemporaryDirectory() as elsewhere:
        for name in sorted(os.listdir(folder)):
            if not name.endswith(".sched"):
                continue
            path = os.path.join(folder, name)
            for stage in stages(schedc):
                first = emit(schedc, path, stage, ROOT, LC_ALL="C")
                others = [emit(schedc, path, stage, elsewhere, LC_ALL="C"), emit(schedc, path, stage, ROOT, LC_ALL="de_DE.UTF-8", TZ="Asia/Tokyo")]
                same = first[0] == 0 and first[1] and all(o == first for o in others)
                passed, failed = passed + bool(same), failed + (not same)
                if not same:
                    print(f"FAIL {name}: {stage} differs, or fails")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
