#!/usr/bin/env python3
"""What the command does to files, and of odd ones: bytes in names, links in the place of outputs, devices as inputs, an output on
standard output, a limit of the cache that is no size, an NVRTC that lacks a part of itself. And of command lines that say two
things at once, or what would be ignored.

  files.py --schedc build/release/schedc
"""
import argparse
import glob
import io
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy

from checks import Checks, Skip, expect

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

SCHEDULE = """kernel twice {
  in  X : f32[M, 64]
  out Y, Z : f32[M, 64]
  spec { Y[i,j] = 2 * X[i,j];  Z[i,j] = 3 * X[i,j] }
  case small { M = 100 }
  grid (x : cdiv(M, 64))
  role math : 1 warpgroup, 128 regs {
    reg v : f32[64, 64]
    v[i,j] = X[x*64 + i, j]
    Y[x*64 + i, j] = 2 * v[i,j]
    Z[x*64 + i, j] = 3 * v[i,j]
  }
}
"""
NVRTC_MISSING = "G.nvrtc"


class Place:
    """A folder with the schedule, and the command run in it."""

    def __init__(self, schedc, folder):
        self.schedc, self.folder = schedc, folder
        self.put("twice.sched", SCHEDULE)

    def path(self, name):
        return os.path.join(self.folder, name)

    def put(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def run(self, *words, to=subprocess.PIPE, **variables):
        """(exit code, standard output, what is said on standard error)"""
        done = subprocess.run([self.schedc, *words], cwd=self.folder, stdout=to, stderr=subprocess.PIPE,
                              env={**os.environ, **variables}, timeout=120)
        return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")

    def good(self, *words, **variables):
        code, out, said = self.run(*words, **variables)
        if code and NVRTC_MISSING in said:
            raise Skip("there is no NVRTC")
        expect(code == 0, f"{words}: exit code {code}: {out}{said}")
        return out, said

    def fails(self, code, words, *say):
        was, _, said = self.run(*words)
        expect(was == code, f"{words}: exit code {was}: {said}")
        for word in say:
            expect(word in said, f"{words}: nothing says '{word}': {said}")
        return said


def any_byte_in_a_name(place):
    """The path stands in a comment of the text that NVRTC reads."""
    names = [bytes(range(first, first + 16)) for first in range(0x80, 0x100, 16)]
    for name in [b"\"quoted\"", *names]:
        name += b".sched"
        with open(os.path.join(os.fsencode(place.folder), name), "wb") as file:
            file.write(SCHEDULE.encode())
        place.good("build", name, "-o", "any.ptx", "--no-cache")
        expect(b".entry twice" in place.read("any.ptx"), f"{name} makes PTX without a kernel")
        if b'"' in name:
            code, _, said = place.run("build", name, "-o", "any.cubin", "--no-cache")
            expect(code == 0, f"{name} makes no machine code: {said}")


def an_output_takes_a_link_s_place(place):
    place.put("kept.txt", "kept")
    for command, name in ((("build", "twice.sched", "-o"), "link.cu"), (("fmt", "twice.sched", "-o"), "link.sched"),
                          (("run", "twice.sched", "--out"), "link.npy")):
        os.symlink("kept.txt", place.path(name))
        place.good(*command[:-1], command[-1], f"Y={name}" if command[0] == "run" else name)
        expect(not os.path.islink(place.path(name)), f"{name} is a link still")
        expect(place.read("kept.txt") == b"kept", f"{command}: what the link names is written")


def a_link_is_formatted_in_place(place):
    place.put("behind.sched", SCHEDULE.replace("  in", "    in"))
    os.symlink("behind.sched", place.path("before.sched"))
    place.good("fmt", "-i", "before.sched")
    expect(os.path.islink(place.path("before.sched")), "fmt -i replaces a link")
    place.good("fmt", "--check", "behind.sched")


def nobody_s_temporary_is_written(place):
    """Links lie where the next processes would have their temporaries."""
    place.put("kept.txt", "kept")
    code = "import os; print(os.getpid())"
    now = int(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout)
    planted = [place.path(f"y.cu.schedc-{pid}{end}") for pid in range(now, now + 400) for end in ("", "-0")]
    for path in planted:
        os.symlink("kept.txt", path)
    place.good("build", "twice.sched", "-o", "y.cu")
    expect(place.read("kept.txt") == b"kept", "a link in the place of a temporary is followed")
    expect(b"twice" in place.read("y.cu"), "y.cu is not written")
    left = set(glob.glob(place.path("y.cu.*"))) - set(planted)
    expect(not left, f"left behind: {left}")


def permissions_are_kept(place):
    place.put("mine.cu", "old")
    os.chmod(place.path("mine.cu"), 0o640)
    place.good("build", "twice.sched", "-o", "mine.cu")
    expect(os.stat(place.path("mine.cu")).st_mode & 0o777 == 0o640, "the permissions are others")


def what_fails_leaves_the_old_file(place):
    place.put("old.npy", "old")
    place.put("bad.sched", SCHEDULE + "}")
    place.fails(1, ("run", "bad.sched", "--out", "Y=old.npy"))
    expect(place.read("old.npy") == b"old", "the old file is gone")
    place.fails(3, ("run", "twice.sched", "--out", "Y=/dev/full"), "cannot write '/dev/full'", "No space left")
    place.fails(3, ("run", "twice.sched", "--out", "Y=."), "cannot write '.'")


def a_file_of_another_rank(place):
    for shape, more in (((64,), True), ((64, 64, 2), True), ((64, 65), False)):
        numpy.save(place.path("other.npy"), numpy.zeros(shape, numpy.float32))
        said = place.fails(3, ("run", "twice.sched", "--in", "X=other.npy"), "F.npy", "but 'X' is (64, 64)")
        expect(("an array of 2 dimensions: reshape it" in said) == more, f"{shape}: {said}")


def a_case_without_a_dimension(place):
    place.put("open.sched", SCHEDULE.replace("{ M = 100 }", "{ }"))
    place.fails(2, ("run", "open.sched", "--on", "cpu"), "dimension 'M' has no value: the case 'small'", "--set M=100")
    place.good("run", "open.sched", "--on", "cpu", "--set", "M=100")


def an_output_on_standard_output(place):
    out, said = place.good("run", "twice.sched", "--out", "Y=-", "--out", "Z=z.npy")
    y, z = numpy.load(io.BytesIO(out)), numpy.load(place.path("z.npy"))
    expect(y.shape == (100, 64) and (y * 3 == z * 2).all(), "not the output's elements")
    expect(said.endswith("PASS\n"), f"the report is not on standard error: {said}")
    place.fails(2, ("run", "twice.sched", "--out", "Y=-", "--out", "Z=-"), "only one output can go to standard output")
    place.fails(2, ("run", "twice.sched", "--out", "Y=-", "--format", "json"), "both want the standard output")


def standard_output_is_full(place):
    """It is named, and once; not as '-'."""
    place.put("crooked.sched", SCHEDULE.replace("  in", "    in"))
    for words in (("build", "twice.sched", "--to", "cu", "-o", "-"), ("check", "twice.sched", "--emit=ast"),
                  ("fmt", "crooked.sched"), ("run", "twice.sched", "--on", "cpu", "--out", "Y=-")):
        with open("/dev/full", "wb") as full:
            code, _, said = place.run(*words, to=full)
        expect(code == 3 and said.count("cannot write") == 1, f"{words}: exit code {code}: {said}")
        expect("cannot write to standard output: No space left" in said, f"{words}: {said}")


def without_a_specification(place):
    """The outputs are written, if they are asked for; it is said that nothing was compared."""
    place.put("bare.sched", "\n".join(line for line in SCHEDULE.split("\n") if "spec" not in line))
    run = ("run", "bare.sched", "--on", "cpu")
    place.fails(1, run, "error[T.spec]")
    out, said = place.good(*run, "--out", "Y=y.npy")
    expect(not said and b"nothing was compared" in out and b"PASS" not in out, f"{out}{said}")
    y = numpy.load(place.path("y.npy"))
    expect(y.shape == (100, 64) and numpy.isfinite(y).all(), "not the output's elements")
    out, said = place.good(*run, "--out", "Y=y.npy", "--format", "json")
    told = json.loads(out)
    expect(told["pass"] is None and told["outputs"] == told["diagnostics"] == [], f"{told}")
    place.put("wrong.sched", SCHEDULE.replace("Y[i,j] = 2", "Y[i,j] = 5"))
    code, out, _ = place.run("run", "wrong.sched", "--on", "cpu", "--out", "Y=y.npy")
    expect(code == 1 and b"FAIL" in out, f"what is wrong, with --out: exit code {code}: {out}")


def many_failures(place):
    """Of a case three are told, and the number of the others; JSON has all."""
    place.put("wrong.sched", SCHEDULE.replace("Y[i,j] = 2", "Y[i,j] = 5"))
    code, out, _ = place.run("test", "wrong.sched")
    failures = json.loads(place.run("test", "wrong.sched", "--format", "json")[1])["failures"]
    told, more = out.count(b"FAIL "), re.search(rb"and (\d+) more of the case '\w+': --format json", out)
    expect(code == 1 and told == 3 and more and told + int(more[1]) == len(failures), f"{told} of {len(failures)}: {out[-300:]}")


def two_things_at_once(place):
    """What contradicts itself, or would be ignored, is refused, and nothing is written."""
    twice, cpu = "twice.sched", ("--on", "cpu")
    for say, words in (("'-o x.cu' asks for cu, and '--to ptx' for ptx", ("build", twice, "-o", "x.cu", "--to", "ptx")),
                       ("'--time' measures on a GPU", ("run", twice, *cpu, "--time")),
                       ("'--time' measures on a GPU", ("run", twice, "--policy", "early", "--time")),
                       ("'--debug-waits' is of emitted code", ("run", twice, *cpu, "--debug-waits")),
                       ("'--debug-waits' is of emitted code", ("test", twice, "--debug-waits")),
                       ("--emit and --format json both want", ("check", twice, "--emit=ast", "--format", "json")),
                       ("--emit and --format sarif both want", ("check", twice, "--emit=ast", "-o", "-", "--format", "sarif")),
                       ("--param gives 'A' twice: '1' and '2'", ("check", twice, "-p", "A=1", "--param", "A=2")),
                       ("--set gives 'M' twice: '1' and '2'", ("run", twice, *cpu, "--set", "M=1", "--set", "M=2")),
                       ("--in gives 'X' twice", ("run", twice, *cpu, "--in", "X=a.npy", "--in", "X=b.npy"))):
        said = place.fails(2, words, say)
        expect(len(said.splitlines()) == 2, f"{words}: {said}")
    expect(not os.path.exists(place.path("x.cu")), "x.cu is written all the same")
    place.good("build", twice, "-o", "x.text", "--to", "cu")
    place.good("build", twice, "-o", "x.cu", "--to", "cu")
    place.good("check", twice, "--emit=ast", "-o", "tree", "--format", "json")
    place.good("run", twice, *cpu, "--set", "M=3", "--out", "Y=a.npy", "--out", "Y=b.npy")
    expect(place.read("a.npy") == place.read("b.npy"), "an output in two files differs")


def options_that_are_none(place):
    """Is the option unknown, without its argument, or with one that it does not take?"""
    for say, words in (("'--on' lacks its argument", ("run", "twice.sched", "--on")),
                       ("'-p' lacks its argument", ("run", "twice.sched", "-p")),
                       ("'--one' is not an option here", ("run", "twice.sched", "--one")),
                       ("'--rounds' is not an option here", ("run", "twice.sched", "--rounds", "3")),
                       ("'-z' is not an option here", ("run", "twice.sched", "-zp")),
                       ("'--time' takes no argument", ("run", "twice.sched", "--time=3")),
                       ("'--help' takes no argument", ("run", "twice.sched", "--help=3"))):
        said = place.fails(2, words, say)
        expect("or lacks" not in said, said)


def what_the_help_says(place):
    """Where '-' is a file, what a number without a unit is; and it holds."""
    out, _ = place.good("--help")
    expect(b"read standard input where FILE is '-'" in out, out)
    for command in ("run", "test", "check", "build", "info", "fmt"):
        expect(command.encode() in out.split(b"read standard input")[0].splitlines()[-1], f"{command}: {out}")
        more = ("--to", "cu", "-o", "-") if command == "build" else ("--quick",) if command == "test" else ()
        done = subprocess.run([place.schedc, command, "-", *more], input=SCHEDULE.encode(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=120)
        expect(done.returncode == 0 and done.stdout, f"{command} -: {done.stderr}")
    expect(b"usage: schedc bench {FILE [KERNEL] [NAME=VALUE]...}... [options]" in place.good("bench", "--help")[0], "bench")
    expect(b"a number alone is of seconds" in place.good("tune", "--help")[0], "--budget")
    expect(b"as long as the space is large" in place.good("check", "--help")[0], "--all-params")


def a_limit_that_is_no_size(place):
    for said in ("abc", "5X", "-1"):
        variables = {"SCHEDC_CACHE_SIZE": said, "SCHEDC_CACHE": place.path("cache" + said)}
        _, warned = place.good("build", "twice.sched", "-o", "x.cubin", **variables)
        expect("warning[G.cache]" in warned and f"'{said}'" in warned, f"{said}: {warned}")
    variables["SCHEDC_CACHE"], variables["SCHEDC_CACHE_SIZE"] = place.path("another"), "5M"
    _, warned = place.good("build", "twice.sched", "-o", "x.cubin", **variables)
    expect("G.cache" not in warned, warned)


def nvrtc_without_its_other_library(place):
    """Empty files stand in the place of the library that NVRTC opens itself, whichever version it looks for."""
    place.good("build", "twice.sched", "-o", "x.cubin", "--no-cache")
    os.mkdir(place.path("empty"))
    for major in (12, 13):
        for minor in range(10):
            place.put(f"empty/libnvrtc-builtins.so.{major}.{minor}", "")
    code, _, said = place.run("build", "twice.sched", "-o", "x.cubin", "--no-cache", LD_LIBRARY_PATH=place.path("empty"))
    expect(code == 3 and "error[G.nvrtc]" in said and "libnvrtc-builtins" in said, f"exit code {code}: {said}")


def no_schedule_at_all(place):
    place.fails(3, ("check", "/dev/zero"), "/dev/zero", "the device or pipe gives more than 64 MiB")
    place.fails(3, ("check", "."), "Is a directory")
    place.fails(3, ("check", "nothing.sched"), "nothing.sched", "No such file")


def escapes_do_not_reach_a_terminal(place):
    name = "\x1b[31mred.sched"
    place.put(name, "kernel {")
    said = place.fails(1, ("check", name), "?[31mred.sched")
    expect("\x1b" not in said, "an escape code is written as it is")
    _, out, said = place.run("check", name, "--format", "json")
    expect(b"\x1b" not in out and "\x1b" not in said and b"u001b" in out, "an escape code is written as it is")


CHECKS = (any_byte_in_a_name, an_output_takes_a_link_s_place, a_link_is_formatted_in_place, nobody_s_temporary_is_written, permissions_are_kept,
          what_fails_leaves_the_old_file, a_file_of_another_rank, a_case_without_a_dimension, an_output_on_standard_output,
          standard_output_is_full, without_a_specification, many_failures, two_things_at_once, options_that_are_none, what_the_help_says,
          a_limit_that_is_no_size,
          nvrtc_without_its_other_library, no_schedule_at_all, escapes_do_not_reach_a_terminal)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "release", "schedc"))
    args = parser.parse_args()
    checks = Checks()
    for function in CHECKS:
        with tempfile.TemporaryDirectory() as folder:
            checks.run(function.__name__.replace("_", " "), function, Place(os.path.abspath(args.schedc), folder))
    return checks.tell()


if __name__ == "__main__":
    sys.exit(main())
