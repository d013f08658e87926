#!/usr/bin/env python3
"""Lists that are not as their schedules say, on a Hopper GPU: a launch ends in an error of the driver's, and does not hang; as
promised, in the right result. Each check is a process of its own, for such an error takes the CUDA context with it.

  lists.py [--schedc build/release/schedc] [--only REGEX]

It needs numpy, and no PyTorch. With SCHEDC_DRIVER and SCHEDC_NVRTC naming the model of a GPU it runs on that. The last line but
one is JSON: microseconds of a small launch, with lists checked and without.
"""
import argparse
import ctypes
import json
import os
import sys
import tempfile
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import lists  # noqa: E402
from checks import Checks, expect  # noqa: E402
from driver import Driver  # noqa: E402
from libschedc import Kernel, Library  # noqa: E402

LAUNCHES = 200


class Setting:
    """The library and the driver. (Nothing of CUDA is called before a check has its process.)"""
    is_model = False

    def __init__(self, schedc, folder):
        self.schedc, self.folder = schedc, folder
        self.driver_path = os.environ.get("SCHEDC_DRIVER") or "libcuda.so.1"
        self.driver = Driver(self.driver_path)
        self.library = Library(os.path.join(os.path.dirname(schedc), "libschedc.so"))

    def parsed(self, path, unit=None):
        return Kernel(self.library, path, unit)


def apart(function, *args):
    """In a process of its own, which returns figures, or what it raises as text."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            said = json.dumps([function(*args), None])
        except BaseException:  # of whatever kind: the parent tells it
            said = json.dumps([None, traceback.format_exc()])
        os.write(writer, said.encode()[:60000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as file:
        said = file.read()
    os.waitpid(child, 0)
    expect(said, "the process ends without a word")
    figures, error = json.loads(said)
    expect(not error, error)
    return figures


class Apart(Checks):
    def run(self, name, function, *args):
        super().run(name, apart, function, *args)


def timed(s, trust):
    """Microseconds of a launch, of some back to back."""
    found = {}

    def test(blocks, stream):
        for _ in range(2):  # the first warms up
            first, ms = blocks.context.event(stream), ctypes.c_float()
            for _ in range(LAUNCHES):
                blocks.launch(stream)
            second = blocks.context.event(stream)
            s.driver.cuEventSynchronize(second)
            s.driver.cuEventElapsedTime(ctypes.byref(ms), first, second)
        found["us"] = round(ms.value * 1000 / LAUNCHES, 3)
    lists.with_blocks(s, test, lists.GOOD, "blocks", trust)
    return found["us"]


def cost(s):
    return {"checked_us": timed(s, False), "trusted_us": timed(s, True)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "release", "schedc"))
    parser.add_argument("--only", metavar="REGEX", help="checks whose name matches")
    args = parser.parse_args()
    schedc = os.path.abspath(args.schedc)
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        setting, checks = Setting(schedc, folder), Apart(args.only)
        lists.run(checks, setting)
        checks.run("lists: what a check costs", cost, setting)
    print(json.dumps([{k: v for k, v in r.items() if k.endswith("_us")} for r in checks.results if "checked_us" in r]))
    return checks.tell()


if __name__ == "__main__":
    sys.exit(main())
