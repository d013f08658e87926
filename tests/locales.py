#!/usr/bin/env python3
"""What the library writes and reads is the same in every locale: the command, made to run where a comma stands between the digits
of 0.5 (German), or a character of two bytes (Pashto), says in JSON, SARIF, CUDA C and text of the library's what it says in C's.

  locales.py --schedc build/release/schedc
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOCALES = {"de_DE": ",", "ps_AF": "\u066b"}  # and what stands between the digits of 0.5
# A program that embeds the library may have done this.
SHIM = """#include <locale.h>
#include <stdio.h>
__attribute__((constructor)) static void begin(void) {
  if (!setlocale(LC_ALL, "")) fputs("the locale is not there\\n", stderr);
}
"""
SCALED = """kernel scaled {
  in  X : f32[M, 64], n : i32, c : f32 = 0.125
  out Y : f32[M, 64]
  spec { Y[i,j] = c * X[i,j] + 1.5 }
  case small { M = 64, n = 1 }
  grid (x : cdiv(M, 64))
  role math : 1 warpgroup, 128 regs {
    reg v : f32[64, 64]
    v[i,j] = X[x*64 + i, j]
    Y[x*64 + i, j] = c * v[i,j] + 1.5
  }
}
"""
COMMANDS = ("info schedules/fa3_fwd.sched --case paper", "info schedules/fa3_fwd.sched --case paper --format json",
            "check schedules/fa3_bwd.sched --format sarif", "build schedules/fa3_stale.sched --to cu -o -",
            "fmt schedules/fa3_stale.sched", "run {scaled} --format json", "run {scaled} --set n=3000000000 --format json",
            "build {scaled} --to cu -o -")


def run(schedc, command, env):
    done = subprocess.run([schedc, *command.split()], cwd=ROOT, env={**os.environ, **env}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120, encoding="utf-8")
    kept = re.sub(r"\npredicted on .*", "", done.stdout)  # which the command itself prints, for a terminal
    return done.returncode, re.sub(r'(_seconds": ?)[\d.e-]+', r"\1", kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "release", "schedc"))
    schedc = os.path.abspath(parser.parse_args().schedc)
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        source, shim, scaled = (os.path.join(folder, name) for name in ("shim.c", "shim.so", "scaled.sched"))
        for path, text in ((source, SHIM), (scaled, SCALED)):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        subprocess.run(["cc", "-shared", "-fPIC", source, "-o", shim], check=True)
        cases = []
        for name, point in LOCALES.items():
            locale = os.path.join(folder, name + ".UTF-8")
            made = subprocess.run(["localedef", "-c", "-i", name, "-f", "UTF-8", locale], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, encoding="utf-8")
            if not os.path.isdir(locale):
                print(f"there is no locale {name} to be had: {made.stdout}0 passed, 0 failed, 1 skipped")
                return 0
            there = {"LOCPATH": folder, "LC_ALL": os.path.basename(locale), "LD_PRELOAD": shim}
            asked = "import locale; locale.setlocale(locale.LC_ALL, ''); print(locale.localeconv()['decimal_point'])"
            said = subprocess.run([sys.executable, "-c", asked], env={**os.environ, **there, "PYTHONIOENCODING": "utf-8"},
                                  stdout=subprocess.PIPE, encoding="utf-8").stdout.strip()
            cases.append((f"{name} has its own decimal point", said == point, said))
            for command in COMMANDS:
                command = command.format(scaled=scaled)
                plain, other = run(schedc, command, {}), run(schedc, command, there)
                cases.append((f"{name}: {command}", plain == other and "." in plain[1], other[1][:2000]))
    for name, good, seen in cases:
        passed, failed = passed + bool(good), failed + (not good)
        if not good:
            print(f"FAIL {name}: {seen}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
