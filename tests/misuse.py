"""Checks of tests/device.py: what is said of wrong uses, by the library, the model and the command. Each is one clear error,
which names what would be right."""
import ctypes
import os
import re
import shutil
import subprocess
import tempfile

import numpy

import shims
from checks import Wrong, expect, expect_failure
from driver import CudaError, Launcher, pointer, size
from refused import refuse_all
from setting import ATTENTION, COPY, ROOT, SOURCE, run_as

# ---- of the library and the driver

def refused(function, *words):
    """The driver's error has all the words."""
    try:
        function()
    except CudaError as error:
        for word in words:
            expect(word in str(error), f"nothing says '{word}': {error}")
        return
    raise Wrong(f"nothing is refused: '{words[0]}'")


def module(s, name):
    """(module, function) of a kernel, as the driver is given it."""
    path, loaded, function = os.path.join(s.folder, name + ".cubin"), pointer(), pointer()
    if not os.path.exists(path):
        shims.succeed(s.schedc, "build", SOURCE.format(name), "-o", path)
    with open(path, "rb") as file:
        code = file.read()
    s.driver.cuModuleLoadData(ctypes.byref(loaded), code)
    s.driver.cuModuleGetFunction(ctypes.byref(function), loaded, name.encode())
    return loaded, function


def start(s, function, params, grid=1, block=256, shared=0, extra=None):
    s.driver.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, None, params, extra)


def no_room(s):
    """Shared memory: 48 KB, or as much as was asked for before, up to 227 KB."""
    loaded, function = module(s, "gemm")
    params = (ctypes.c_void_p * 8)()
    refused(lambda: start(s, function, params, shared=98368), "98368 bytes of shared memory", "49152", "cuFuncSetAttribute")
    refused(lambda: s.driver.cuFuncSetAttribute(function, 8, 300000), "300000", "232448")
    s.driver.cuFuncSetAttribute(function, 8, 98368)
    refused(lambda: start(s, function, params, shared=98369), "98369 bytes of shared memory", "98368", "cuFuncSetAttribute")
    s.driver.cuModuleUnload(loaded)


def wrong_launches(s):
    loaded, function = module(s, "copy")
    params = (ctypes.c_void_p * 8)()
    refused(lambda: start(s, function, params, block=256), "256 threads", "__launch_bounds__", "128")
    refused(lambda: start(s, function, params, block=100), "100 x 1 x 1 threads", "multiple of 32")
    refused(lambda: start(s, function, params, block=128, grid=0), "grid", "0")
    refused(lambda: start(s, function, None, block=128), "3 parameters")
    refused(lambda: start(s, function, params, block=128), "parameter 0", "NULL")
    refused(lambda: start(s, function, params, block=128, extra=params), "extra")
    s.driver.cuModuleUnload(loaded)
    refused(lambda: s.driver.cuModuleLoadData(ctypes.byref(pointer()), b"no kernel" * 20), "200")


def no_map(s):
    """A parameter that should be a tensor map is something else: known when the kernel uses it."""
    loaded, function = module(s, "copy")
    s.driver.cuFuncSetAttribute(function, 8, 100000)
    block = (ctypes.c_uint64 * 64)(*[1] * 64)
    params = (ctypes.c_void_p * 3)(*[ctypes.addressof(block)] * 3)
    start(s, function, params, block=128, shared=24624)
    refused(s.context.synchronize, "719", "tensor map")


def wrong_tensors(s):
    """Refused by name, whether their shapes are known or new; nothing is launched, and what is right still runs."""
    run_as()
    kernel = s.fresh("fa3_fwd")
    tensors = s.tensors(kernel, ATTENTION)
    for known in (False, True):
        refuse_all(kernel, tensors.described, None)
        s.context.synchronize()
        tensors.download()
        expect(known or numpy.isnan(tensors.views[3]).all(), "something was launched")
        tensors.clear()
        Launcher(tensors)()
        s.context.synchronize()
        tensors.check()
    kernel.close()


def wrong_workspaces(s):
    """None, one that is too small, and one that is not aligned."""
    path, unit, dims, _ = shims.CASES["a sequence"]
    launch = Launcher(s.tensors(s.kernel(path, unit), dims))
    room = launch.room
    expect(room > 0, "the sequence needs no workspace")
    wrong = [(None, 0, [f"{room} bytes", "given 0"]), (launch.workspace, room - 1, [f"{room} bytes", str(room - 1)]),
             (launch.workspace + 64, room, ["workspace's address", "multiple of 256"])]
    for at, given, words in wrong:
        expect_failure(lambda: launch.kernel.launch(None, launch.described, at, given), *words)


def stray_copies(s):
    """Copies past the end of what was allocated, and of nothing that was."""
    at, room = s.context.allocate(100), numpy.zeros(200, numpy.uint8)
    refused(lambda: s.context.put(at, room), "cuMemcpyHtoD", "200 bytes", "allocated")
    refused(lambda: s.context.get(at + 50, room[:51]), "cuMemcpyDtoH", "51 bytes", "allocated")
    refused(lambda: s.driver.cuMemFree_v2(ctypes.c_uint64(at + 16)), "cuMemFree", "allocated")
    refused(lambda: s.driver.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), size(0)), "0 bytes")


def encode(s, address=0x1000, inner=64, box=64, stride=128, swizzle=3, rank=5):
    room = (ctypes.c_uint64 * 32)()
    at = (ctypes.addressof(room) + 63) // 64 * 64
    dims, steps = (ctypes.c_uint64 * 5)(inner, 8, 1, 1, 1), (ctypes.c_uint64 * 4)(stride, 16, 16, 16)
    boxes, ones = (ctypes.c_uint * 5)(box, 8, 1, 1, 1), (ctypes.c_uint * 5)(1, 1, 1, 1, 1)
    s.driver.cuTensorMapEncodeTiled(pointer(at), 6, rank, pointer(address), dims, steps, boxes, ones, 0, swizzle, 0, 0)
    return at, room


def wrong_maps(s):
    """Each by what is wrong, and what would be right."""
    encode(s)
    refused(lambda: encode(s, address=0x1008), "0x1008", "multiple of 16")
    refused(lambda: encode(s, stride=100), "100", "multiple of 16")
    refused(lambda: encode(s, stride=1 << 40), "2^40")
    refused(lambda: encode(s, box=128), "256 bytes", "swizzle", "128")
    refused(lambda: encode(s, box=12), "24 bytes", "multiple of 16")
    refused(lambda: encode(s, inner=0), "extent")
    refused(lambda: encode(s, rank=4), "5 dimensions")
    at, room = encode(s)
    refused(lambda: s.driver.cuTensorMapReplaceAddress(pointer(at), pointer(0x1004)), "0x1004", "multiple of 16")
    expect(room is not None, "the map's memory is kept until here")


def wrong_captures(s):
    stream, graph = pointer(s.context.stream()), pointer()
    refused(lambda: s.driver.cuStreamBeginCapture_v2(None, 0), "default stream")
    refused(lambda: s.driver.cuStreamEndCapture(stream, ctypes.byref(graph)), "not being captured")
    s.driver.cuStreamBeginCapture_v2(stream, 0)
    refused(lambda: s.driver.cuStreamBeginCapture_v2(stream, 0), "is being captured")
    s.driver.cuStreamEndCapture(stream, ctypes.byref(graph))
    s.driver.cuGraphDestroy(graph)


def wrong_options(s):
    """SCHEDC_MODEL is read when the driver starts, and at each launch."""
    launch = Launcher(s.tensors(s.kernel("copy"), COPY))
    for text in ("policy=never", "sms=0", "sms=65", "seed", "seed=x", "lanes=none", "colour=blue", "late"):
        os.environ["SCHEDC_MODEL"] = text
        expect_failure(lambda: s.fresh("copy"), "SCHEDC_MODEL is a list", f"'{text}'", "policy=early, late, random or laggard")
    run_as()
    launch()
    s.context.synchronize()


# ---- the command

def said(done, code, *words):
    expect(done.returncode == code, f"exit code {done.returncode}, not {code}: {done.stdout}")
    for word in words:
        expect(word in done.stdout, f"nothing says '{word}': {done.stdout}")
    errors = re.findall(r"error\[|^schedc \w+:.*", done.stdout, re.M)
    expect(len(errors) <= 2, f"more than one error and a last line: {done.stdout}")


def no_ptx(s):
    path = os.path.join(s.folder, "copy.ptx")
    done = s.run("build", SOURCE.format("copy"), "-o", path, SCHEDC_NVRTC=s.model)
    said(done, 3, "the model makes no PTX")
    expect(not os.path.exists(path), "there is a file all the same")


def no_model(s):
    """There is no such file; it is no library; it is another library."""
    run = ["run", "--on", "model", SOURCE.format("copy"), "--case", "small"]
    said(s.run(*run, SCHEDC_MODEL_LIBRARY="/nonexistent"), 3, "SCHEDC_MODEL_LIBRARY", "'/nonexistent'")
    said(s.run(*run, SCHEDC_MODEL_LIBRARY="README.md"), 3, "README.md", "SCHEDC_MODEL_LIBRARY")
    said(s.run(*run, SCHEDC_MODEL_LIBRARY=s.library_path), 3, "libschedc.so", "SCHEDC_MODEL_LIBRARY")
    alone = os.path.join(tempfile.mkdtemp(dir=s.folder), "schedc")
    shutil.copy(s.schedc, alone)
    said(s.run(*run, program=alone), 3, "neither beside schedc nor installed", "SCHEDC_MODEL_LIBRARY=PATH")
    shutil.copy(s.model, os.path.dirname(alone))
    said(s.run(*run, SCHEDC_MODEL_LIBRARY=os.path.join(os.path.dirname(alone), "libschedc_model.so")), 0, "PASS")


def no_compiler(s):
    """CXX names what is not there, or what fails; and PATH has none."""
    run = ["run", "--on", "model", SOURCE.format("copy"), "--case", "small", "--no-cache"]
    said(s.run(*run, CXX="/nonexistent/c++"), 3, "C++ compiler", "'/nonexistent/c++'", "CXX")
    said(s.run(*run, PATH=s.folder, CXX=""), 3, "C++ compiler", "'c++'", "CXX")
    said(s.run(*run, CXX="false"), 3, "'false'", "exit code 1", "CXX")
    said(s.run(*run, TMPDIR="/nonexistent"), 3, "TMPDIR", "'/nonexistent")
    for other in filter(shutil.which, ("g++", "clang++")):
        said(s.run(*run, CXX=other), 0, "PASS")


def moved(s):
    """The model by a relative path; then what that built, from another folder."""
    folder = tempfile.mkdtemp(dir=s.folder)
    shutil.copy(s.model, folder)
    environment = dict(os.environ, SCHEDC_CACHE=os.path.join(folder, "cache"))
    for where, path in ((folder, "./libschedc_model.so"), (ROOT, os.path.join(folder, "libschedc_model.so"))):
        environment.update(SCHEDC_DRIVER=path, SCHEDC_NVRTC=path)
        done = subprocess.run([s.schedc, "run", "--on", "cuda", os.path.join(ROOT, SOURCE.format("copy")), "--case", "small"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, encoding="utf-8", cwd=where,
                              env=environment)
        said(done, 0, "PASS")


# ---- all of them

def run(checks, s):
    for name, function in (("no room", no_room), ("wrong launches", wrong_launches), ("wrong tensors", wrong_tensors),
                           ("wrong workspaces", wrong_workspaces), ("stray copies", stray_copies),
                           ("wrong maps", wrong_maps), ("wrong captures", wrong_captures), ("wrong options", wrong_options),
                           ("no map", no_map), ("no model", no_model), ("no compiler", no_compiler), ("no PTX", no_ptx),
                           ("moved", moved)):
        checks.run(name, function, s)
