#!/usr/bin/env python3
"""The interpreter on tensors as callers have them: every layout of layouts.py, empty extents, and what is refused. Each
result is compared with the specification; between and around the elements of outputs nothing may be written.

  strides.py --library build/libschedc.so
"""
import argparse
import os
import sys

import numpy

import layouts
from libschedc import OUT, Failed, Kernel, Library
from tally import expect, tell

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TYPES = {"f32": numpy.float32, "f16": numpy.float16}


def make(kernel, dims, layout, draw):
    """(storages, views): NaN everywhere but in the elements of inputs."""
    storages, views = [], []
    for i, (name, kind, direction, _) in enumerate(kernel.tensors):
        shape = kernel.shape(i, dims)
        strides, offset, size = layouts.place(shape, **layout.get(name, {}))
        storage = numpy.full(size, numpy.nan, TYPES[kind])
        strided = numpy.lib.stride_tricks.as_strided
        view = strided(storage[offset:], shape, [n * storage.itemsize for n in strides])
        if not direction & OUT:
            once = view[tuple(slice(0, 1) if n == 0 else slice(None) for n in strides)]
            once[...] = draw.standard_normal(once.shape)
        storages.append(storage)
        views.append(view)
    return storages, views


def describe(kernel, views):
    return kernel.describe([v.ctypes.data if v.size else 0 for v in views], [v.shape for v in views],
                           [[n // v.itemsize for n in v.strides] for v in views])


def check_layout(kernel, dims, name, layout, draw):
    storages, views = make(kernel, dims, layout, draw)
    tensors = describe(kernel, views)
    try:
        kernel.run_cpu(tensors)
        errors = kernel.compare(tensors)
    except Failed as error:
        expect(name, False, error)
        return
    for e in errors:
        expect(f"{name}, {e.tensor.decode()}", e.pass_, f"{e.max_error} of {e.max_allowed}")
    for (tensor, _, direction, _), storage, view in zip(kernel.tensors, storages, views):
        if direction & OUT:
            expect(f"{name}, around {tensor}", numpy.isnan(storage).sum() == storage.size - view.size)


def check_refusals(kernel, dims, draw):
    """What cannot be run is refused by the name of the tensor; what was good still runs."""
    _, views = make(kernel, dims, {}, draw)
    names = [t[0] for t in kernel.tensors]
    changes = {
        "Q": lambda t: t.strides.__setitem__(3, 2), "K": lambda t: t.strides.__setitem__(1, -64),
        "V": lambda t: t.shape.__setitem__(1, 99), "O": lambda t: t.strides.__setitem__(0, 0),
        "L": lambda t: setattr(t, "data", None),
    }
    for name, change in changes.items():
        tensors = describe(kernel, views)
        change(tensors[names.index(name)])
        try:
            kernel.run_cpu(tensors)
            expect(f"refused, {name}", False, "it ran")
        except Failed as error:
            expect(f"refused, {name}", f"'{name}'" in str(error), error)
    kernel.run_cpu(describe(kernel, views))
    expect("after what was refused", all(e.pass_ for e in kernel.compare(describe(kernel, views))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--library", required=True)
    os.chdir(ROOT)
    library = Library(parser.parse_args().library)
    draw = numpy.random.default_rng(5)
    for schedule, params in (("fa3_fwd", {}), ("fa3_stale", {"causal": True})):
        kernel = Kernel(library, f"schedules/{schedule}.sched", params=params)
        for name, layout in layouts.ATTENTION.items():
            check_layout(kernel, {"B": 2, "M": 70, "N": 190, "H": 4, "G": 2}, f"{schedule} {name}", layout, draw)
        for dims in ({"B": 0, "N": 5}, {"M": 0, "N": 5}, {"N": 0}, {"M": 1, "N": 1}):
            dims = {"B": 2, "M": 70, "H": 2, "G": 1, **dims}
            check_layout(kernel, dims, f"{schedule} {dims}", {}, draw)
        check_refusals(kernel, {"B": 2, "M": 70, "N": 100, "H": 2, "G": 1}, draw)
        kernel.close()
    kernel = Kernel(library, "schedules/gemm.sched")
    for name, layout in layouts.GEMM.items():
        check_layout(kernel, {"M": 70, "N": 136, "K": 72}, f"gemm {name}", layout, draw)
    for dims in ({"M": 0, "N": 8, "K": 8}, {"M": 3, "N": 8, "K": 0}):
        check_layout(kernel, dims, f"gemm {dims}", {}, draw)
    kernel.close()
    return tell()


if __name__ == "__main__":
    sys.exit(main())
