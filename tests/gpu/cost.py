"""Checks of tests/gpu/launch.py: what schedc_launch costs beyond the driver's own launch of the same kernel with the same
arguments, on the host: the launches of a burst are timed by burst.c, and are fewer than the driver's queue holds."""
import ctypes
import os
import shutil
import statistics
import subprocess
import tempfile

import torch

import kit
from kit import describe, expect, make, prepare
from streams import Driver, capture

BURST, ROUNDS, ALLOWED = 200, 60, 5.0  # launches; bursts of each kind; microseconds beyond the driver's
TINY = {"copy": {"M": 64, "N": 64}, "fa3_stale": {"B": 1, "M": 64, "N": 64, "H": 1, "G": 1}}


class Node(ctypes.Structure):
    _fields_ = [("function", ctypes.c_void_p), ("dims", ctypes.c_uint * 6), ("shared", ctypes.c_uint),
                ("params", ctypes.c_void_p), ("extra", ctypes.c_void_p), ("kernel", ctypes.c_void_p),
                ("context", ctypes.c_void_p)]


def build():
    compiler = next(filter(shutil.which, ("cc", "gcc", "clang")), None)
    if not compiler:
        raise kit.Skip("there is no C compiler")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "burst.so")
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", os.path.join(kit.HERE, "burst.c"), "-o", path], check=True)
        so = ctypes.CDLL(path)
    so.through_schedc.restype = so.through_driver.restype = ctypes.c_double
    return so


def node_of(driver, run):
    """The launch as the driver sees it: a captured graph's only node. (graph, node): the first owns the second's arrays."""
    graph, types = capture(driver, run)
    expect(types == [0], f"the graph's nodes have types {types}")
    at, count, node = ctypes.c_void_p(), ctypes.c_size_t(1), Node()
    driver.cuGraphGetNodes(graph, ctypes.byref(at), ctypes.byref(count))
    driver.cuGraphKernelNodeGetParams_v2(at, ctypes.byref(node))
    return graph, node


def sets_of(kernel, dims):
    """Descriptions of the same tensors; of two sets in other places; of more shapes than are remembered."""
    def one(**more):
        views = [view for _, view in make(kernel, {**dims, **more}, {})]
        return views, describe(kernel, views)
    first, second = one(), one()
    return {"known": [first], "moved": [first, second], "new": [one(M=64 + i) for i in range(12)]}


def address(function):
    return ctypes.cast(function, ctypes.c_void_p)


def median(times):
    expect(min(times) > 0, "a launch is refused")
    return round(statistics.median(times) / BURST * 1e6, 3)


def cost(kernels, schedule):
    so, driver, kernel = build(), Driver(), kernels.get(schedule)
    stream, sets = torch.cuda.Stream(), sets_of(kernel, TINY[schedule])
    graph, node = node_of(driver, prepare(kernel, sets["known"][0][0]))
    at = ctypes.c_void_p(stream.cuda_stream)

    def ours(name):
        given = [described for _, described in sets[name]]
        array = (ctypes.c_void_p * len(given))(*map(ctypes.addressof, given))
        return lambda: so.through_schedc(address(kernel.so.schedc_launch), kernel.library.context, kernel.loaded, at, array,
                                         len(given),
                                         ctypes.c_size_t(len(kernel.tensors)), BURST)
    bursts = {"driver": lambda: so.through_driver(address(driver.so.cuLaunchKernel), ctypes.byref(node), at, BURST),
              **{name: ours(name) for name in sets}}
    times = {name: [] for name in bursts}
    torch.cuda.synchronize()
    for turn in range(ROUNDS + 5):
        for name, burst in bursts.items():
            took = burst()
            torch.cuda.synchronize()
            if turn >= 5:
                times[name].append(took)
    driver.cuGraphDestroy(graph)
    result = {name + "_us": median(all_) for name, all_ in times.items()}
    beyond = max(result["known_us"], result["moved_us"]) - result["driver_us"]
    expect(beyond < ALLOWED, f"{beyond:.2f} us beyond the driver's, allowed are {ALLOWED}: {result}")
    return result


def run(checks, kernels):
    for schedule in TINY:
        checks.run(f"{schedule}: cost of a launch", cost, kernels, schedule)
