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
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(1, os.path.join(HERE, "gpu"))

import numpy  # noqa: E402

import layouts  # noqa: E402
import lists  # noqa: E402
import misuse  # noqa: E402
import shims  # noqa: E402
import strides  # noqa: E402
from checks import Wrong, expect, expect_failure  # noqa: E402
from driver import LAUNCH_FAILED, NOT_READY, Context, CudaError, Launcher, Tensors, pointer, size  # noqa: E402
from hang import make_editor  # noqa: E402
from libschedc import Failed, Gpu, GpuInfo, Scalar, Tensor  # noqa: E402
from setting import ATTENTION, COPY, GEMM, SHORT, SOURCE, Renewing, Setting, load, run_as  # noqa: E402

HEADERS = {  # those of shims.py, with dimensions for which the model needs a moment
    "fa3_stale": ATTENTION, "gemm_pingpong": GEMM, "a sequence": None, "a sequence that launches a kernel twice": None,
}
POLICIES = ("late", "early", "random", "laggard")


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


# ---- tensors and scalars by name, or by place

def by_name(s):
    """In any order by their names, or in the kernel's order without; and what is unknown, given twice or missing is said."""
    run_as()
    kernel, so = s.kernel("fa3_stale"), s.library.so
    tensors = s.tensors(kernel, SHORT)
    n, scale = len(kernel.tensors), 1 / 128 ** 0.5

    def call(places, nameless=(), scalars=()):
        usual, needed = tensors.described(), size(0)
        given = (Tensor * len(places))(*[usual[i] for i in places])
        for i in nameless:
            given[i].name = None
        values = (Scalar * max(1, len(scalars)))(*scalars)
        arguments = given, size(len(places)), values, size(len(scalars))
        s.library.check(so.schedc_workspace_size(s.library.context, kernel.loaded, *arguments, ctypes.byref(needed)))
        tensors.clear()
        s.library.check(so.schedc_launch(s.library.context, kernel.loaded, None, *arguments, None, size(0)))
        s.context.synchronize()
        tensors.check()
    order = list(range(n))
    for places, nameless in ((order, ()), (order, order), (order[::-1], ()), (order[2:] + order[:2], ()), (order, (1, 3)),
                             ([1, 0, *order[2:]], (2, n - 1))):
        for scalars in ((), [Scalar(b"scale", scale)], [Scalar(None, scale)], [Scalar(None, float("nan"))]):
            call(places, nameless, scalars)
    try:
        call(order, (), [Scalar(b"scale", 2 * scale)])
        raise Failed("the scalar does not reach the kernel")
    except Wrong as wrong:
        expect("is off by" in str(wrong), wrong)
    for places, nameless, scalars, words in (
            (order[:-1], (), (), ["T.missing", "'L'"]), (order + [0], (), (), ["T.twice", "'Q'"]),
            (order + [0], (n,), (), ["T.unknown", f"tensor {n}"]), ([1, 0, *order[2:]], (0,), (), ["T.twice", "'Q'"]),
            (order, (), [Scalar(b"scales", 1)], ["T.unknown", "'scales'"]),
            (order, (), [Scalar(b"scale", 1)] * 2, ["T.twice", "'scale'"])):
        expect_failure(lambda: call(places, nameless, scalars), *words)
    call(order)


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


def jobs(s):
    """jobs.c: what is said of each job of schedc_gpu_run."""
    run_as()
    program, beside = os.path.join(s.folder, "jobs"), os.path.dirname(s.model)
    shims.succeed("cc", "-O1", "-Iinclude", "tests/jobs.c", s.library_path, f"-Wl,-rpath,{beside}", "-o", program)
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


# ---- machine code of the caller's

class LoadOptions(ctypes.Structure):
    """schedc_load_options"""
    _fields_ = [("size", ctypes.c_size_t), ("build", ctypes.c_void_p), ("cubin", ctypes.c_char_p), ("cubin_bytes", ctypes.c_size_t)]


def given_code(s, name, unit, dims, other):
    """What `schedc build` wrote is loaded without NVRTC, and launched; that of another kernel, or half of it, is not."""
    run_as()
    path = os.path.join(s.folder, "given.cubin")

    def built(name, *params):
        shims.succeed(s.schedc, "build", name if "/" in name else SOURCE.format(name), *params, "-o", path)
        with open(path, "rb") as file:
            return file.read()
    code, kernel = built(name), s.parsed(name, unit)

    def load(code):
        options = LoadOptions(ctypes.sizeof(LoadOptions), None, code, len(code))
        s.library.check(s.library.so.schedc_load(ctypes.byref(kernel.loaded), s.library.context, kernel.handle,
                                                 ctypes.byref(options)))
    wrong = [(code[:-7], "cut off"), (built(*other), "of another kernel")]
    os.environ["SCHEDC_NVRTC"] = "/nonexistent"
    try:
        for given, words in wrong:
            expect_failure(lambda: load(given), "error[G.cubin]", words)
            expect_failure(lambda: run_on_host_tensors(s, kernel, dims, cubin=given), "error[G.cubin]", words)
        load(code)
        run_on_host_tensors(s, kernel, dims, cubin=code)
    finally:
        os.environ["SCHEDC_NVRTC"] = s.model
    tensors = s.tensors(kernel, dims)
    Launcher(tensors)()
    s.context.synchronize()
    tensors.check()
    kernel.close()


# ---- kernels that are wrong: each in a context of its own, and then a good one in the next

RACE = r"s/^ *sc_mbar_wait\(smem \+ tile_full.*\);/;/"  # a copy out does not wait for what was copied in
HANG = r"s/^ *sc_mbar_expect\(.*\);/;/"                 # nobody tells that it was
ODD = r"s/u16 \*row_out = args\.C/u16 *row_out = (u16 *)((char *)args.C + 1)/"  # stores of 16 bits at odd addresses
DIVIDED = r"s/x_tile \* 16,/x_tile * 16 \/ t,/"               # a copy's row is divided by the round, which begins with 0
SHIFTED = r"s/(&A_map, .*, )t \* 64,/\1t * 64 + 4,/"       # boxes that begin 8 bytes off


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
    """A run on host tensors reports at the schedule's lines; the next one is right."""
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
    edited(s, script)
    load(s, kernel, debug_waits=1)
    edited(s, None)
    tensors = Tensors(context, kernel, COPY)
    Launcher(tensors)()
    context.synchronize()

    def check():
        s.library.check(s.library.so.schedc_check_waits(s.library.context, kernel.loaded))
    with open(SOURCE.format("copy"), encoding="utf-8") as file:
        line = 1 + [text.strip() for text in file].index("wait tile")
    if script:
        expect_failure(check, "error[G.wait]", "waited in vain for fill 0 of 'tile'", f"copy.sched:{line}:")
    else:
        check()
        tensors.check()
    kernel.close()
    context.close()


def run_on_host_tensors(s, kernel, dims, device=0, cubin=None):
    """Compared. What the device is, as `Gpu.info` says."""
    storages, views = strides.make(kernel, dims, {}, numpy.random.default_rng(1))
    tensors, gpu = strides.describe(kernel, views), Gpu(s.library, device)
    try:
        gpu.run(kernel, tensors, cubin)
        info = gpu.info()
        said = {name: getattr(info, name) for name, _ in GpuInfo._fields_}
    finally:
        gpu.close()
    expect(all(e.pass_ for e in kernel.compare(tensors)), "the outputs are wrong")
    return said


# ---- a device among several

def context_of(model, device):
    """The status of asking for it, and its address."""
    context = ctypes.c_void_p()
    return model.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), context.value


def devices(s):
    """Each is opened by its number, and no other; what there is not is named."""
    os.environ["SCHEDC_MODEL"] = "sms=3,devices=3"
    count, why = ctypes.c_size_t(), ctypes.create_string_buffer(200)
    available = s.library.so.schedc_gpu_available
    try:
        s.library.check(s.library.so.schedc_gpu_count(s.library.context, ctypes.byref(count)))
        expect(count.value == 3, f"{count.value} devices of 3")
        model = ctypes.CDLL(s.model)
        retained = [context_of(model, device) for device in range(3)]
        expect([status for status, _ in retained] == [0, 0, 0] and len(set(retained)) == 3, f"contexts: {retained}")
        expect(context_of(model, 3)[0] and context_of(model, -1)[0], "a device that there is not has a context")
        for device in range(3):
            expect(model.cuDevicePrimaryCtxRelease_v2(device) == 0, f"device {device} is not given back")
        kernel = s.parsed("copy")
        for device in (2, 0, 1):
            said = run_on_host_tensors(s, kernel, COPY, device)
            want = {"device": device, "multiprocessors": 3, "capability_major": 9, "capability_minor": 0, "clock_mhz": 1000.0,
                    "l2_bytes": 50 << 20, "pci": f"0000:0{device}:00.0".encode(),
                    "uuid": f"GPU-00000000-0000-0000-0000-00000000000{device}".encode()}
            expect(all(said[name] == value for name, value in want.items()), f"device {device}: {said}")
            expect(said["memory_bytes"] >= 4 << 30, "memory")
            s.library.check(available(s.library.context, device, None, size(0)))
        expect_failure(lambda: run_on_host_tensors(s, kernel, COPY, 3), "no CUDA device 3", "has 3")
        expect(available(s.library.context, 3, why, size(200)) and b"no CUDA device 3" in why.value, why.value)
        kernel.close()
    finally:
        run_as()


def devices_of_a_machine(s):
    """tests/gpu/devices.py, on three of them."""
    done = s.run(os.path.join(HERE, "gpu", "devices.py"), "--library", s.library_path, program=sys.executable,
                 SCHEDC_DRIVER=s.model, SCHEDC_NVRTC=s.model, SCHEDC_MODEL="devices=3")
    expect(done.returncode == 0 and done.stdout.endswith("11 passed, 0 failed, 0 skipped\n"), done.stdout)


def any_name(s):
    """A kernel may have a name that the model's own text has."""
    path = os.path.join(s.folder, "p.sched")
    with open("schedules/copy.sched", encoding="utf-8") as file:
        text = file.read().replace("kernel copy {", "kernel p {")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    done = s.run("run", path, "p", "--on", "model", "--set", "M=70", "--set", "N=64")
    expect(done.returncode == 0 and "PASS" in done.stdout, done.stdout)


def command_device(s):
    """--device N of the command: a run there, what there is not, and with --on cpu."""
    gpu = {"SCHEDC_DRIVER": s.model, "SCHEDC_NVRTC": s.model, "SCHEDC_MODEL": "devices=2"}
    short = ["schedules/copy.sched", "--set", "M=70", "--set", "N=64"]
    for device, code, words in (("1", 0, "on the GPU"), ("2", 3, "no CUDA device 2: this machine has 2"),
                                ("-1", 2, "wants a number")):
        done = s.run("run", *short, "--device", device, **gpu)
        expect(done.returncode == code and words in done.stdout, f"{device}: {done.stdout}")
    done = s.run("bench", *short, "--device", "2", **gpu)
    expect(done.returncode == 3 and "no CUDA device 2" in done.stdout, done.stdout)
    done = s.run("run", *short, "--device", "0", "--on", "cpu", **gpu)
    expect(done.returncode == 2 and "--on cpu" in done.stdout, done.stdout)


# ---- all of them

def run_all(checks, s):
    all_layouts(checks, s)
    checks.run("tensors by name and by place", by_name, s)
    for seed in range(3):
        checks.run(f"a stream's order, seed {seed}", in_order, s, seed)
        checks.run(f"loaded behind work, seed {seed}", loaded_behind_work, s, seed)
    checks.run("events", events, s)
    checks.run("three streams", side_by_side, s, "fa3_stale", {"causal": True}, 1)
    checks.run("three streams, tiles by a fixed stride", side_by_side, s, "fa3_alg1", {}, 2)
    checks.run("four threads", host_threads, s)
    checks.run("jobs", jobs, s)
    checks.run("contexts", contexts, s)
    checks.run("captured: fa3_stale", captured, s, "fa3_stale", None, {"causal": True}, SHORT)
    checks.run("captured: a sequence", captured, s, "tests/gpu/sequence.sched", None, {}, {"M": 100, "N": 72})
    checks.run("two graphs and a launch", two_in_a_graph, s)
    checks.run("what may not be captured", forbidden_while_captured, s)
    for name, dims in HEADERS.items():
        checks.run(f"C header: {name}", header, s, name, dims)
    checks.run("machine code of a kernel", given_code, s, "gemm", None, GEMM, ("gemm", "-p", "BM=128"))
    checks.run("machine code of a sequence", given_code, s, "tests/gpu/sequence.sched", None, {"M": 100, "N": 72}, ("copy",))
    checks.run("several devices", devices, s)
    checks.run("devices of a machine", devices_of_a_machine, s)
    checks.run("--device", command_device, s)
    checks.run("a kernel named p", any_name, s)
    misuse.run(checks, s)
    s.close()
    lists.run(checks, s)
    checks.run("a launch that races", wrong_launch, s, RACE, "T2", ["shared memory"])
    checks.run("a launch that hangs", wrong_launch, s, HANG, "deadlock", ["no thread can go on"])
    checks.run("bounded waits", bounded_waits, s, None)
    checks.run("bounded waits of a launch that hangs", bounded_waits, s, HANG)
    for name, dims, script, rule, words in (("copy", COPY, RACE, "T2", ["of 'tile'"]),
                                            ("copy", COPY, HANG, "deadlock", ["no thread can go on", "full barrier of 'tile'"]),
                                            ("gemm", GEMM, ODD, "T5", ["of tensor 'C'", "not aligned"]),
                                            ("gemm", GEMM, SHIFTED, "T5", ["begins at element", "whole 16 bytes"]),
                                            ("copy", COPY, DIVIDED, "division", ["divided by 0"])):
        checks.run(f"a run with a fault: {rule}", wrong_run, s, name, dims, script, rule, words)


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
