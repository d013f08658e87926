#!/usr/bin/env python3
"""What the command does to files, and of odd ones: bytes in names, links in the place of outputs, devices as inputs, an output on
standard output, a limit of the cache that is no size, an NVRTC that lacks a part of itself.

  files.py --schedc build/release/schedc
"""
import argparse
import glob
import io
import os
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

    def run(self, *words, **variables):
        """(exit code, standard output, what is said on standard error)"""
        done = subprocess.run([self.schedc, *words], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
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
    place.fails(2, ("run", "open.sched", "--on", "cpu"), "dimension 'M' has no value", "--set M=100")
    place.good("run", "open.sched", "--on", "cpu", "--set", "M=100")


def an_output_on_standard_output(place):
    out, said = place.good("run", "twice.sched", "--out", "Y=-", "--out", "Z=z.npy")
    y, z = numpy.load(io.BytesIO(out)), numpy.load(place.path("z.npy"))
    expect(y.shape == (100, 64) and (y * 3 == z * 2).all(), "not the output's elements")
    expect(said.endswith("PASS\n"), f"the report is not on standard error: {said}")
    place.fails(2, ("run", "twice.sched", "--out", "Y=-", "--out", "Z=-"), "only one output can go to standard output")
    place.fails(2, ("run", "twice.sched", "--out", "Y=-", "--format", "json"), "both want the standard output")


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
    place.fails(3, ("check", "/dev/zero"), "/dev/zero", "MiB")
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
