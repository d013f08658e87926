#!/usr/bin/env python3
"""Every Hopper GPU of this machine by its number: what it is, a kernel on it, on tensors in host memory; and the number
past the last, which is refused.

  devices.py [--library build/release/libschedc.so]

It needs numpy, and no PyTorch. With SCHEDC_DRIVER and SCHEDC_NVRTC naming the model of a GPU it runs on that
(SCHEDC_MODEL=devices=3), as tests/device.py does. The last line but one is JSON: the devices.
"""
import argparse
import ctypes
import json
import os
import sys

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from libschedc import Failed, Gpu, Kernel, Library  # noqa: E402

results = []


def expect(what, holds, why=""):
    results.append(bool(holds))
    if not holds:
        print(f"FAILED {what}: {why}")


def copied(kernel, gpu, seed):
    """Is Y what X was?"""
    x, y = numpy.random.default_rng(seed).standard_normal((200, 136)).astype("f2"), numpy.zeros((200, 136), "f2")
    gpu.run(kernel, kernel.describe([x.ctypes.data, y.ctypes.data], [x.shape, y.shape]))
    return numpy.array_equal(x, y)


def on_device(library, kernel, number):
    """What it is; None: no Hopper."""
    gpu = Gpu(library, number)
    try:
        info = gpu.info()
        said = {"device": info.device, "name": info.name.decode(), "pci": info.pci.decode(), "uuid": info.uuid.decode(),
                "capability": [info.capability_major, info.capability_minor], "multiprocessors": info.multiprocessors,
                "memory_bytes": info.memory_bytes, "l2_bytes": info.l2_bytes, "clock_mhz": info.clock_mhz}
        hopper = said["capability"] == [9, 0]
        available = library.so.schedc_gpu_available(library.context, ctypes.c_int(number), None, ctypes.c_size_t(0)) == 0
        expect(f"device {number}: available", available == hopper, said)
        if hopper:
            expect(f"device {number}: a copy", copied(kernel, gpu, number))
    finally:
        gpu.close()
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--library", default=os.path.join(ROOT, "build", "release", "libschedc.so"))
    library, count = Library(parser.parse_args().library), ctypes.c_size_t()
    library.check(library.so.schedc_gpu_count(library.context, ctypes.byref(count)))
    kernel = Kernel(library, os.path.join(ROOT, "schedules", "copy.sched"))
    devices = [on_device(library, kernel, number) for number in range(count.value)]
    expect("a device", devices)
    expect("numbers", [d["device"] for d in devices] == list(range(len(devices))), devices)
    for key in ("pci", "uuid"):
        expect(f"each has a {key} of its own", len({d[key] for d in devices}) == len(devices), devices)
    try:
        Gpu(library, len(devices)).run(kernel, kernel.describe([0, 0], [(0, 64), (0, 64)]))
        expect("a device too many", False, "is not refused")
    except Failed as error:
        expect("a device too many", f"no CUDA device {len(devices)}" in str(error), error)
    kernel.close()
    print(json.dumps(devices))
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed, 0 skipped")
    return not all(results)


if __name__ == "__main__":
    sys.exit(main())
