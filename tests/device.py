#!/usr/bin/env python3
"""What callers do with the library and a GPU, on the model of one: tensors with strides, streams, events, graphs, threads of
the host, C headers; what goes on after a kernel that is wrong; and what is said of wrong uses, by the library, the command
and the model. Without a GPU or CUDA; it needs the C++ compiler of the host.

  device.py --schedc build/release/schedc [--only REGEX] [--verbose]

The library and the model are those beside schedc. (tests/gpu/launch.py does as much, and more, on a Hopper GPU.)
"""
import argparse
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[1:1] = [os.path.join(ROOT, "bench"), os.path.join(HERE, "gpu")]

import numpy  # noqa: E402

import layouts  # noqa: E402
import shims  # noqa: E402
import strides  # noqa: E402
from checks import Checks, Wrong, expect, expect_failure  # noqa: E402
from driver import LAUNCH_FAILED, NOT_READY, Context, CudaError, Driver, Launcher, Tensors, pointer, size  # noqa: E402
from hang import make_editor  # noqa: E402
from libschedc import Failed, Kernel, Library  # noqa: E402
from refused import refuse_all  # noqa: E402

ATTENTION = {"B": 2, "M": 70, "N": 190, "H": 4, "G": 2}
SHORT = {"B": 1, "M": 70, "N": 190, "H": 2, "G": 1}
GEMM = {"M": 70, "N": 136, "K": 72}
COPY = {"M": 130, "N": 136}
HEADERS = {  # those of shims.py, with dimensions for which the model needs a moment
    "fa3_stale": ATTENTION, "gemm_pingpong": GEMM, "a sequence": None, "a sequence that launches a kernel twice": None,
}
POLICIES = ("late", "early", "random", "laggard")
SOURCE = "schedules/{}.sched"


class Renewing(Checks):
    """A launch that fails takes its context with it: the next check has another."""

    def __init__(self, only, setting):
        super().__init__(only)
        self.setting = setting

    def settle(self, name):
        s = self.setting
        if s.context and s.driver.so.cuCtxSynchronize() == LAUNCH_FAILED:
            s.close()
            s.open()


class Setting:
    """The library, the model as its driver, a context that is current, and kernels that are loaded on it, once each."""

    def __init__(self, args, folder):
        self.schedc, self.folder = args.schedc, folder
        beside = os.path.dirname(args.schedc)
        self.model = os.path.join(beside, "libschedc_model.so")
        os.environ.update(SCHEDC_DRIVER=self.model, SCHEDC_NVRTC=self.model, SCHEDC_MODEL="sms=3")
        self.cache = os.environ.setdefault("SCHEDC_CACHE", os.path.join(folder, "cache"))
        self.library_path = os.path.join(beside, "libschedc.so")
        self.driver, self.library = Driver(self.model), self.fresh_library()
        self.open()

    def open(self):
        self.context, self.known = Context(self.driver), {}

    def fresh_library(self):
        return Library(self.library_path)

    def kernel(self, name, unit=None, **params):
        key = name, unit, tuple(sorted(params.items()))
        if key not in self.known:
            self.known[key] = self.fresh(name, unit, **params)
        return self.known[key]

    def fresh(self, name, unit=None, **params):
        kernel = self.parsed(name, unit, **params)
        kernel.load()
        return kernel

    def parsed(self, name, unit=None, **params):
        return Kernel(self.library, name if "/" in name else SOURCE.format(name), unit, params)

    def close(self):
        for kernel in self.known.values():
            kernel.close()
        self.context.close()
        self.context = None

    def tensors(self, kernel, dims, layout=None, seed=5):
        return Tensors(self.context, kernel, dims, layout, numpy.random.default_rng(seed))

    def run(self, *command, program=None, **environment):
        """schedc, in an environment without what makes the library find the model."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith("SCHEDC_") or k == "SCHEDC_CACHE"}
        return subprocess.run([program or self.schedc, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                              encoding="utf-8", env={**clean, **environment})


def run_as(policy="late", seed=0, sms=3):
    os.environ["SCHEDC_MODEL"] = f"policy={policy},seed={seed},sms={sms}"


# ---- layouts of tensors

def laid_out(s, name, params, dims, layout, number):
    """The outputs are what the specification says, and nothing is written beside them."""
    run_as(POLICIES[number % len(POLICIES)], number)
    tensors = s.tensors(s.kernel(name, **params), dims, layout, number)
    Launcher(tensors)()
    s.context.synchronize()
    tensors.check()


def all_layouts(checks, s):
    number = 0
    for name, params, dims, known in (("fa3_fwd", {}, ATTENTION, layouts.ATTENTION), ("gemm", {}, GEMM, layouts.GEMM),
                                      ("fa3_stale", {"causal": True}, ATTENTION, layouts.ATTENTION)):
        for what, layout in known.items():
            checks.run(f"{name}: {what}", laid_out, s, name, params, dims, layout, number)
            number += 1
    for dims in ({"M": 0}, {"N": 0}, {"B": 0}, {"M": 1, "N": 1}):
        checks.run(f"fa3_fwd: {dims}", laid_out, s, "fa3_fwd", {}, {**SHORT, **dims}, {}, 0)


# ---- streams and events

def in_order(s, seed):
    """A launch comes after what is on its stream already, and does not wait for it. (The seed mixes it with other streams'.)"""
    run_as("random", seed)
    tensors = s.tensors(s.kernel("copy"), COPY)
    launch, stream = Launcher(tensors), s.context.stream()
    n = tensors.storages[0].nbytes
    s.driver.cuMemsetD8Async(ctypes.c_uint64(tensors.at[0]), ctypes.c_ubyte(0), size(n), pointer(stream))
    launch(stream)
    event = s.context.event(stream)
    expect(s.driver.so.cuEventQuery(event) == NOT_READY, "what was launched has ended when the launch returns")
    s.driver.cuStreamSynchronize(pointer(stream))
    expect(s.driver.so.cuEventQuery(event) == 0, "the event is not there after its stream has ended")
    tensors.peek()
    expect(not tensors.views[1].any(), "the stream has ended, and the launch did not see what was set before it")


def events(s):
    """Time passes between events on a stream, and whoever asks again and again sees the second come."""
    run_as()
    launch, stream, ms = Launcher(s.tensors(s.kernel("gemm"), GEMM)), s.context.stream(), ctypes.c_float(-1)
    first = s.context.event(stream)
    launch(stream)
    second = s.context.event(stream)
    asked = 0
    while s.driver.so.cuEventQuery(second) == NOT_READY:
        asked += 1
        expect(asked < 100, "the second event does not come")
    s.driver.cuEventElapsedTime(ctypes.byref(ms), first, second)
    expect(ms.value > 0, f"{ms.value} ms between two events with a launch between them")


def loaded_behind_work(s, seed):
    """Launched on a stream that does not wait for the default one, as soon as it is loaded."""
    run_as("random", seed)
    kernel, stream = s.parsed("fa3_stale", causal=True), s.context.stream()
    tensors = s.tensors(kernel, SHORT)
    kernel.load()
    Launcher(tensors)(stream)
    s.context.synchronize()
    tensors.check()
    kernel.close()


def side_by_side(s, name, params, seed):
    """Launches of one kernel on three streams, which the seed mixes, have the bits that each has alone."""
    run_as()
    kernel = s.kernel(name, **params)
    sets = [s.tensors(kernel, {**SHORT, "M": m}, seed=m) for m in (70, 130, 40)]
    launches, streams, wants = [Launcher(t) for t in sets], [s.context.stream() for _ in sets], []
    for launch, tensors in zip(launches, sets):
        launch()
        s.context.synchronize()
        tensors.check()
        wants.append(tensors.bits())
        tensors.clear()
    run_as("random", seed)
    for _ in range(3):
        for launch, stream in zip(launches, streams):
            launch(stream)
    s.context.synchronize()
    for i, (tensors, want) in enumerate(zip(sets, wants)):
        expect(tensors.bits() == want, f"stream {i} has other bits")


def host_threads(s):
    """launchers.c: four threads of the host launch one kernel."""
    run_as("random", 1, 1)
    program, beside = os.path.join(s.folder, "launchers"), os.path.dirname(s.model)
    shims.succeed("cc", "-O1", "-Iinclude", "tests/launchers.c", s.library_path, s.model, "-pthread", f"-Wl,-rpath,{beside}",
                  "-o", program)
    done = shims.header.run(program)
    expect(done.returncode == 0, f"exit code {done.returncode}: {done.stdout}")


def contexts(s):
    """A thread with no context is told so, by a load and by a launch; and the current one is found and left."""
    kernel, said = s.kernel("copy"), []
    described = s.tensors(kernel, COPY).described()

    def work():
        for function in (lambda: s.fresh("copy"), lambda: kernel.launch(None, described)):
            try:
                expect_failure(function, "no CUDA context is current")
            except Wrong as wrong:
                said.append(str(wrong))
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    expect(not said, "; ".join(said))
    current = pointer()
    s.driver.cuCtxGetCurrent(ctypes.byref(current))
    expect(current.value == s.context.handle, "another context is current than before")


# ---- graphs

def captured(s, name, unit, params, dims):
    """The first launch of all is captured, which runs nothing; replayed with other inputs. The graph outlives what it was made
    from, and other launches between its own change nothing."""
    run_as()
    kernel = s.fresh(name, unit, **params)
    tensors, other = s.tensors(kernel, dims), s.tensors(kernel, {**dims, "M": dims["M"] + 9}, seed=6)
    launch, between, stream = Launcher(tensors), Launcher(other), s.context.stream()
    runs = s.context.captured(launch)
    s.context.synchronize()
    tensors.download()
    expect(all(numpy.isnan(view).all() for _, view in tensors.outputs().values()), "it ran while it was captured")
    for seed in range(3):
        fresh = s.tensors(kernel, dims, seed=seed)
        for mine, theirs in zip(tensors.storages, fresh.storages):
            mine[...] = theirs
        tensors.upload()
        between()
        s.context.replay(runs, stream)
        s.context.synchronize()
        tensors.check()
    other.check()
    s.driver.cuGraphExecDestroy(runs)
    kernel.close()


def two_in_a_graph(s):
    """Two captured launches of one kernel with a dynamic grid, replayed on two streams at once with plain launches beside."""
    run_as("random", 2)
    kernel = s.kernel("fa3_stale", causal=True)
    sets = [s.tensors(kernel, {**SHORT, "M": m}, seed=m) for m in (60, 90, 120)]
    launches, streams = [Launcher(t) for t in sets], [s.context.stream() for _ in range(3)]
    graphs = [s.context.captured(launch) for launch in launches[:2]]
    for _ in range(2):
        for graph, stream in zip(graphs, streams):
            s.context.replay(graph, stream)
        launches[2](streams[2])
    s.context.synchronize()
    for tensors in sets:
        tensors.check()


def forbidden_while_captured(s):
    """The model refuses what the driver does while a stream is captured, so that a launch that waited would be seen."""
    tensors = s.tensors(s.kernel("copy"), COPY)
    launch, stream, refused = Launcher(tensors), s.context.stream(), 900

    def capture(function):
        status = []
        s.context.captured(lambda stream: (launch(stream), status.append(function(pointer(stream)))))
        return status[0]
    expect(capture(s.driver.so.cuStreamSynchronize) == refused, "a stream that is captured can be waited for")
    expect(capture(lambda _: s.driver.so.cuMemFree_v2(ctypes.c_uint64(0))) == refused, "memory can be freed meanwhile")
    launch(stream)
    s.context.synchronize()
    tensors.check()


# ---- C headers

def header(s, name, dims):
    """What the header's functions launch has the bits of schedc_launch, three times in one workspace."""
    run_as("random", 3)
    path, unit, usual, scalars = shims.CASES[name]
    dims = dims or usual
    kernel = s.kernel(path, unit)
    tensors = s.tensors(kernel, dims)
    Launcher(tensors, scalars)()
    s.context.synchronize()
    want, folder = tensors.bits(), tempfile.mkdtemp(dir=s.folder)
    with shims.Shim(folder, s.schedc, s.model, path, unit) as shim:
        arguments = shim.arguments(kernel, tensors.addresses, tensors.steps(), dims, scalars)
        workspace = s.context.allocate(shim.room(arguments) or 256)
        for turn in range(3):
            tensors.clear()
            error = shim.launch(arguments, workspace, None)
            expect(error == 0, f"launch {turn + 1}: CUDA error {error}: {s.driver.text(error)}")
            expect(tensors.bits() == want, f"launch {turn + 1}: other bits than of schedc_launch")


# ---- kernels that are wrong: each in a context of its own, and then a good one in the next

RACE = r"s/^ *sc_mbar_wait\(smem \+ tile_full.*\);/;/"  # a copy out does not wait for what was copied in
HANG = r"s/^ *sc_mbar_expect\(.*\);/;/"                 # nobody tells that it was
ODD = r"s/args\.C\[/((u16 *)((char *)args.C + 1))[/"    # stores of 16 bits at odd addresses


class BuildOptions(ctypes.Structure):
    """schedc_build_options"""
    _fields_ = [("size", ctypes.c_size_t), ("lenient", ctypes.c_int), ("no_cache", ctypes.c_int), ("cache", ctypes.c_char_p),
                ("log", ctypes.c_void_p), ("log_user", ctypes.c_void_p), ("cache_bytes", ctypes.c_uint64),
                ("debug_waits", ctypes.c_int)]


def edited(s, script):
    """The library builds texts that `sed -E` has edited, from here on; None: as they are."""
    number = len(os.listdir(s.folder))
    os.environ["SCHEDC_NVRTC"] = make_editor(s.folder, s.model) if script else s.model
    os.environ["SCHEDC_CACHE"] = os.path.join(s.folder, f"edited-{number}") if script else s.cache
    os.environ.update(EDIT_NVRTC=script or "", EDIT_NVRTC_LOG=os.path.join(s.folder, "edits"))


def in_next_context(s):
    """All is well in a new context, and what was on the GPU in the last is gone."""
    context = Context(s.driver)
    kernel = s.fresh("copy")
    tensors = Tensors(context, kernel, COPY)
    Launcher(tensors)(context.stream())
    context.synchronize()
    tensors.check()
    kernel.close()
    context.close()


def wrong_launch(s, script, rule, words):
    """Of two launches the first goes wrong. Whoever waits is told why, and so is every later call; nothing else comes of it."""
    run_as()
    context, before = Context(s.driver), ctypes.c_uint64()
    edited(s, script)
    kernel = s.fresh("copy")
    edited(s, None)
    tensors, good = Tensors(context, kernel, COPY), s.fresh("gemm")
    launch, after, stream = Launcher(tensors), Launcher(Tensors(context, good, GEMM)), context.stream()
    launch(stream)
    after(stream)
    for call in (lambda: s.driver.cuStreamSynchronize(pointer(stream)), context.synchronize, lambda: after(stream),
                 lambda: s.driver.cuMemAlloc_v2(ctypes.byref(before), size(64))):
        try:
            call()
        except CudaError as error:
            expect(error.status == LAUNCH_FAILED, str(error))
            said = str(error)
        except Failed as error:
            said = str(error)
        else:
            raise Wrong("a call succeeds after a launch that failed")
        for word in (f"[{rule}]", "copy.sched:", *words):
            expect(word in said, f"nothing says '{word}': {said}")
    kernel.close()
    good.close()
    context.close()
    in_next_context(s)


def wrong_run(s, name, dims, script, rule, words):
    """schedc_run_cuda reports at the schedule's lines; the next run is right."""
    run_as()
    kernel = s.parsed(name)
    edited(s, script)
    expect_failure(lambda: run_on_host_tensors(s, kernel, dims), "error[G.model]", f"({rule})", f"{name}.sched:", *words)
    edited(s, None)
    run_on_host_tensors(s, kernel, dims)
    kernel.close()


def bounded_waits(s, script):
    """With debug_waits a launch that hangs ends, and schedc_check_waits says who waited for what; if none hangs, nothing."""
    run_as()
    context, kernel = Context(s.driver), s.parsed("copy")
    building = BuildOptions(size=ctypes.sizeof(BuildOptions), debug_waits=1)
    options = (ctypes.c_size_t * 2)(16, ctypes.addressof(building))
    edited(s, script)
    s.library.check(s.library.so.schedc_load(ctypes.byref(kernel.loaded), s.library.context, kernel.handle, options))
    edited(s, None)
    tensors = Tensors(context, kernel, COPY)
    Launcher(tensors)()
    context.synchronize()

    def check():
        s.library.check(s.library.so.schedc_check_waits(s.library.context, kernel.loaded))
    if script:
        expect_failure(check, "error[G.wait]", "waited in vain for fill 0 of 'tile'", "copy.sched:32")
    else:
        check()
        tensors.check()
    kernel.close()
    context.close()


def run_on_host_tensors(s, kernel, dims):
    """By schedc_run_cuda, compared."""
    storages, views = strides.make(kernel, dims, {}, numpy.random.default_rng(1))
    tensors = strides.describe(kernel, views)
    s.library.check(s.library.so.schedc_run_cuda(s.library.context, kernel.handle, tensors, size(len(storages)), None,
                                                 size(0), None))
    expect(all(e.pass_ for e in kernel.compare(tensors)), "the outputs are wrong")


# ---- wrong uses

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
    for at, given, words in ((None, 0, [f"{room} bytes", "given 0"]), (launch.workspace, room - 1, [f"{room} bytes", str(room - 1)]),
                             (launch.workspace + 64, room, ["workspace's address", "multiple of 256"])):
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

def run_all(checks, s):
    all_layouts(checks, s)
    for name, function, *args in (
            *((f"a stream's order, seed {seed}", in_order, seed) for seed in range(3)),
            *((f"loaded behind work, seed {seed}", loaded_behind_work, seed) for seed in range(3)), ("events", events), ("three streams", side_by_side, "fa3_stale", {"causal": True}, 1),
            ("three streams, plain grid", side_by_side, "fa3_fwd", {}, 2), ("four threads", host_threads),
            ("contexts", contexts), ("captured: fa3_stale", captured, "fa3_stale", None, {"causal": True}, SHORT),
            ("captured: a sequence", captured, "tests/gpu/sequence.sched", None, {}, {"M": 100, "N": 72}),
            ("two graphs and a launch", two_in_a_graph), ("what may not be captured", forbidden_while_captured)):
        checks.run(name, function, s, *args)
    for name, dims in HEADERS.items():
        checks.run(f"C header: {name}", header, s, name, dims)
    for name, function in (("no room", no_room), ("wrong launches", wrong_launches), ("wrong tensors", wrong_tensors),
                           ("wrong workspaces", wrong_workspaces), ("stray copies", stray_copies), ("wrong maps", wrong_maps), ("wrong captures", wrong_captures),
                           ("wrong options", wrong_options), ("no model", no_model), ("no compiler", no_compiler), ("no PTX", no_ptx),
                           ("moved", moved), ("no map", no_map)):
        checks.run(name, function, s)
    s.close()
    checks.run("a launch that races", wrong_launch, s, RACE, "T2", ["shared memory"])
    checks.run("a launch that hangs", wrong_launch, s, HANG, "deadlock", ["no thread can go on"])
    checks.run("bounded waits", bounded_waits, s, None)
    checks.run("bounded waits of a launch that hangs", bounded_waits, s, HANG)
    checks.run("a run that races", wrong_run, s, "copy", COPY, RACE, "T2", ["of 'tile'"])
    checks.run("a run that hangs", wrong_run, s, "copy", COPY, HANG, "deadlock", ["no thread can go on", "full barrier of 'tile'"])
    checks.run("a run that is misaligned", wrong_run, s, "gemm", GEMM, ODD, "T5", ["of tensor 'C'", "not aligned"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "release", "schedc"))
    parser.add_argument("--only", metavar="REGEX", help="checks whose name matches")
    parser.add_argument("--verbose", action="store_true", help="seconds of each")
    args = parser.parse_args()
    args.schedc = os.path.abspath(args.schedc)
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        setting = Setting(args, folder)
        checks = Renewing(args.only, setting)
        run_all(checks, setting)
    for result in checks.results if args.verbose else ():
        print(f"{result['seconds']:6.2f} s  {result['name']}")
    return checks.tell()


if __name__ == "__main__":
    sys.exit(main())
