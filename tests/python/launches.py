#!/usr/bin/env python3
"""The Python package's launches, on the model of a GPU: tensors in its memory by address, workspaces, streams, graphs, several
devices, what is loaded and unloaded; and what is told without a driver. Needs no GPU, but a C++ compiler.

  launches.py --model build/release/libschedc_model.so [--only REGEX]      (schedc is imported, as in package.py)
"""
import argparse
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import kit
from checks import Checks, Wrong, expect
from driver import Context, Driver
from tune import SWEPT

import numpy

import schedc
from schedc import _core
from schedc._libraries import library_of

DRAW = numpy.random.default_rng(3)
NUMPY = {"f16": numpy.float16, "f32": numpy.float32, "i32": numpy.int32}


def normal(*shape):
    return DRAW.standard_normal(shape).astype(numpy.float16)


class Array:
    """A NumPy array's copy in the model's memory. As CuPy's, its type says by DLPack where it is."""

    def __init__(self, context, array):
        self.context, self.host, self.shape = context, array, array.shape
        self.at = context.allocate(array.nbytes)
        context.put(self.at, array)

    @property
    def memory(self):
        kind = {numpy.dtype(v): k for k, v in NUMPY.items()}[self.host.dtype]
        return schedc.Memory(self.at, kind, self.host.shape, device=0)

    def get(self):
        self.context.get(self.at, self.host)
        return self.host


def run(context, kernel, dims, inputs, stream=0, scalars=None):
    """All tensors by name: those that are given, others of NaN; launched and read back."""
    arrays = {}
    for t in kernel.tensors:
        shape = kernel.shape(t.name, **dims)
        arrays[t.name] = Array(context, inputs.get(t.name, numpy.full(shape, numpy.nan, NUMPY[t.type])))
    memory = tuple(arrays[t.name].memory for t in kernel.tensors)
    room = kernel.workspace_size(memory, scalars)
    kernel.launch(memory, scalars, stream=stream, workspace=context.allocate(room) if room else None, workspace_bytes=room)
    context.synchronize()
    return {name: array.get() for name, array in arrays.items()}


def near(what, out, want, step):
    worst = numpy.abs(out.astype(numpy.float64) - want).max()
    expect(worst <= step, f"{what} is off by {worst}; allowed is {step}")


def attention(context):
    q, k, v = normal(1, 70, 2, 64), normal(1, 190, 1, 64), normal(1, 190, 1, 64)
    kernel = schedc.load("fa3_stale.sched", D=64)
    got = run(context, kernel, {"B": 1, "M": 70, "H": 2, "N": 190, "G": 1}, {"Q": q, "K": k, "V": v}, scalars=(0.2,))
    o, l = kit.attention(q, k, v, scale=0.2)
    near("O", got["O"], o, 0.01)
    near("L", got["L"], l, 1e-3)


def in_eight_bits(context):
    """A sequence that leaves out a kernel, its tensors and a workspace, or has them; with tables of angles, or without."""
    q, k, v = normal(1, 70, 2, 64), normal(1, 190, 1, 64), normal(1, 190, 1, 64)
    angle = numpy.arange(190)[:, None] * 10000.0 ** (-numpy.arange(32) / 32)
    cos, sin = numpy.cos(angle).astype(numpy.float16), numpy.sin(angle).astype(numpy.float16)

    def turned(x, at):
        a, b, c, s = *numpy.split(x.astype(float), 2, 3), *(t[at:at + x.shape[1], None].astype(float) for t in (cos, sin))
        return numpy.concatenate((a * c - b * s, b * c + a * s), 3)
    dims = {"B": 1, "M": 70, "H": 2, "N": 190, "G": 1}
    for rotary in (False, True):
        o = kit.attention(*(turned(q, 120), turned(k, 0)) if rotary else (q, k), v)[0]
        for incoherent in (False, True):
            given = {"Q16": q, "K16": k, "V16": v, **({"cos": cos, "sin": sin} if rotary else {}),
                     **({"signs": DRAW.choice((-1, 1), 64).astype(numpy.float32)} if incoherent else {})}
            kernel = schedc.load("fa3_fp8.sched", TO="f16", D=64, rotary=rotary, incoherent=incoherent)
            expect(sorted(given) == sorted(t.name for t in kernel.tensors if t.name != "O"), f"{kernel.tensors}")
            error = run(context, kernel, dims, given)["O"] - o
            off = numpy.sqrt((error**2).mean() / (o**2).mean())
            expect(off <= 0.08, f"O is off by {off} of its size, rotary {rotary}, incoherent {incoherent}")


def by_gpu(context):
    """A store's record is of the GPU that there is, unless another is named."""
    source, problem = schedc.Source(kit.SCALE, "scale.sched"), {"T": "f16", "offset": "0.5"}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(kit.line(source, {"BM": "64"}, {"M": 100}, "scale", problem=problem))
            file.write(kit.line(source, {"BM": "128"}, {"M": 128}, "scale", "schedc's model of a Hopper GPU", problem))
        kernel = source.kernel(store=path, dims={"M": 100})
        expect(kernel.record.line == 2, f"the record is {kernel.record}")
        expect(source.kernel(store=path, dims={"M": 100}, gpu="a GPU").record.line == 1, "the GPU that is named")
        tables = schedc._store.TABLES
        schedc._store.TABLES = pathlib.Path(folder)
        os.rename(path, os.path.join(folder, "schedc-s-model-of-a-hopper-gpu.jsonl"))
        try:
            with kit.variable("SCHEDC_STORE", None):
                expect(source.kernel(dims={"M": 100}).record.line == 2, "the table of the GPU")
                expect(len(schedc.Store.shipped()) == 2, "the table of the first GPU")
                expect(schedc.Store.shipped("a GPU") is None, "a GPU without a table")
                expect(source.kernel(dims={"M": 100}, gpu="a GPU").record is None, "the table of another GPU")
                expect(source.kernel().record is None and source.kernel(dims={"M": 100}, on="cpu").record is None, "no GPU is asked for")
        finally:
            schedc._store.TABLES = tables
    x = normal(100, 64)
    near("Y", run(context, kernel, {"M": 100}, {"X": x}, scalars=(None, 1))["Y"], 2.0 * x + 1.5, 0.01)


def tuned(context):
    """A search on drawn inputs: what it has found, its store, what a second one knows; what is interrupted keeps what it has."""
    source = schedc.Source(SWEPT, "swept.sched")
    brief = {"dims": {"M": 128}, "turns": 3, "brief_ms": 1, "final_ms": 1, "top": 4, "jobs": 2}
    with tempfile.TemporaryDirectory() as folder:
        store, seen = schedc.Store(os.path.join(folder, "s.jsonl")), []
        found = schedc.tune(source, store=store, progress=lambda at: seen.append(at), **brief)
        expect(found.best.params == {"B": "2"} and found.best.verified and found.best.ratio < 0.7, found)
        failed = {c.params["B"]: c.failed for c in found.candidates if c.failed}
        expect(failed == {"4": "wrong", "3": "R5.agree"} and found.refused == {"R8.smem": 1}, f"{failed}, {found.refused}")
        expect((found.points, found.legal, found.programs, found.interrupted) == (6, 5, 5, False), found)
        expect(found.kernel().params["B"].value == 2 and "chosen: B=2" in str(found), found)
        ranks = sorted((r.rank, r.tuning["B"], r.inputs) for r in schedc.Store(store.path) if r.rank)
        expect(len(ranks) == 3 and ranks[0] == (1, "2", "normal,outliers,ramp"), ranks)
        expect(seen[-1].left == 0 and seen[-1].done > 10 and seen[-1].failed == 2, seen[-1])
        expect({"3", "2", "6"} <= {at.params["B"] for at in seen if at.params}, seen)
        again = schedc.tune(source, store=store.path, resume=True, progress=lambda at: seen.append(at), **brief)
        expect(again.best.params == {"B": "2"} and seen[-1].known >= 4, seen[-1])
        kept = len(store)
        lines = len(schedc.Store(store.path))
        both = schedc.tune(source, store=store, resume=True, inputs=("normal", "ramp"), measured=2, progress=seen.append, **brief)
        expect(both.best.params == {"B": "2"} and seen[-1].known == 2, f"what failed alone is known: {seen[-1]}")
        records = schedc.Store(store.path).records
        measured = [{r.measured for r in some if r.sustained_ms > 0} for some in (records[:lines], records[lines:])]
        expect(measured == [{"normal"}, {"normal,ramp"}], measured)
        launches = [r.launches for r in records[lines:] if r.sustained_ms > 0]
        expect(all(n and n % 2 == 0 for n in launches), f"as many of each of two kinds: {launches}")
        kept = len(store)
        for stop in (lambda at: at.done >= 2, lambda at: at.done >= 2 and os.kill(os.getpid(), signal.SIGINT)):
            part = schedc.tune(source, store=store, progress=stop, **brief)
            expect(part.interrupted and part.best is None and len(store) > kept, f"{part}, {len(store)} lines, {kept} before")
            kept = len(store)
    for count, kinds in ((0, 3), (4, 3), (2, 1)):
        try:
            schedc.tune(source, inputs=("normal", "ramp", "large")[:kinds], measured=count, **brief)
        except ValueError as error:
            expect(f"measured={count}: a number from 1 to {kinds} is wanted" in str(error), error)
            continue
        raise Wrong(f"{count} of {kinds} kinds are measured")
    for wrong, kind in ((lambda at: at.done / 0, ZeroDivisionError), (lambda: None, TypeError)):
        try:
            schedc.tune(source, progress=wrong, **brief)
        except kind:
            continue
        raise Wrong(f"no {kind.__name__} comes out of a search")


def tuned_there(context):
    """A search on tensors of the GPU, which are as they were; and of a sequence."""
    x, y = Array(context, DRAW.standard_normal((128, 32)).astype(numpy.float32)), Array(context, numpy.zeros((128, 32), numpy.float32))
    before = x.host.copy()
    found = schedc.tune(schedc.Source(SWEPT, "swept.sched"), arrays={"X": x.memory, "Y": y.memory}, turns=1, brief_ms=1, final_ms=1,
                        top=2, jobs=2, inputs=("normal", "ramp"))
    expect(found.best.params == {"B": "2"}, found)
    expect(numpy.array_equal(x.get(), before) and not numpy.array_equal(y.get(), 0 * before), "the tensors")
    found = schedc.tune("fa3_bwd.sched", dims={"B": 1, "M": 64, "N": 64, "H": 1, "G": 1}, D=64, BM=128, strategy="model", top=1,
                        turns=1, brief_ms=1, final_ms=1, jobs=2, inputs=("normal", "outliers"), stages=2, wide=False)
    expect(found.best.is_default and found.best.verified, found)


def given(context):
    """Inputs of a search are drawn, and what a sequence is `given` is made of them."""
    data = schedc._tune._Data(schedc.load("fa3_bwd.sched", D=64), {"scale": 0.2}, {"B": 1, "M": 64, "N": 70, "H": 2, "G": 1})
    data.fill("normal", 3)
    data.complete(0)
    held = {}
    for t, memory in zip(data.kernel.tensors, data.tensors):
        size = int(numpy.prod(memory.shape)) * numpy.dtype(NUMPY[t.type]).itemsize
        held[t.name] = numpy.frombuffer(ctypes.string_at(memory.address, size), NUMPY[t.type]).reshape(memory.shape)
    o, l = kit.attention(held["Q"], held["K"], held["V"], scale=0.2)
    near("O", held["O"], o, 0.01)
    near("L", held["L"], l, 1e-3)
    expect(0.9 < held["Q"].astype(float).std() < 1.1 and numpy.isnan(held["dQ"]).all(), "what is drawn, and what is not")


def called(context):
    """A call with outputs given, on the default stream."""
    x, y = Array(context, normal(100, 64)), Array(context, numpy.zeros((100, 64), numpy.float16))
    kernel = schedc.Source(kit.SCALE).kernel()
    out = kernel(x.memory, n=3, Y=y.memory)
    context.synchronize()
    expect(out == y.memory, "the output that is given is not what is returned")
    near("Y", y.get(), 2.0 * x.host + 3.5, 0.01)
    try:
        kernel(x.memory, n=3)
    except TypeError as error:
        expect("give them" in str(error), error)
    else:
        raise Wrong("an output at an address is made")


class Told:
    """An Array whose type tells the extension module in C where it is, as PyTorch's tensors do."""

    def __init__(self, array):
        self.array, rank = array, len(array.shape)
        self.shape = (ctypes.c_int64 * rank)(*array.shape)
        self.strides = (ctypes.c_int64 * rank)(*(s // array.host.itemsize for s in array.host.strides))
        self.bits = 8 * array.host.itemsize


class DlTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)]


class DlExchange(ctypes.Structure):
    _tensor = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DlTensor))
    _stream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("older", ctypes.c_void_p),
                ("functions", ctypes.c_void_p * 3), ("tensor", _tensor), ("stream", _stream)]


def describe(told, out):
    out[0] = DlTensor(told.array.at, 2, 0, len(told.shape), 2, told.bits, 1, ctypes.addressof(told.shape),
                      ctypes.addressof(told.strides), 0)
    return 0


def tell(context):
    """Gives the type its table, once, with a stream of its own as the current one."""
    if hasattr(Told, "table"):
        return
    stream = context.stream()

    def current(kind, device, out):
        out[0] = stream if (kind, device) == (2, 0) else None
        return 0
    table = DlExchange(1, 3, None, (ctypes.c_void_p * 3)(), DlExchange._tensor(describe), DlExchange._stream(current))
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    Told.table, Told.__dlpack_c_exchange_api__ = table, capsule(ctypes.addressof(table), b"dlpack_exchange_api", None)


class Library:
    """As _libraries.py has of PyTorch."""
    waits = False

    @staticmethod
    def device(_array):
        return 0


def zeros(context, told, made):
    """What makes such arrays, and keeps them in `made`."""
    def make(*shape):
        made.append(Array(context, numpy.zeros(shape, numpy.float16)))
        return Told(made[-1]) if told else made[-1].memory
    return make, (100, 64)


def no_room(size):
    raise Wrong(f"a workspace of {size} bytes is asked for")


def alike(context):
    """What is looked up once serves tensors at other addresses, until the kernel is unloaded; outputs are made where it is
    fastest. Arrays that do not tell their stream go another way."""
    tell(context)
    for told in (False, True):
        kernel, calls, here, anywhere = schedc.Source(kit.SCALE).kernel(), {}, [], []
        arrays = [Array(context, normal(100, 64)) for _ in range(3)]
        inputs = [(Told(a) if told else a.memory,) for a in arrays]
        expect(_core.call(calls, 7, inputs[0], (None, 3)) is None, "a call is found that was not prepared")
        first = (*inputs[0], zeros(context, told, [])[0](100, 64))
        library = Library if told else library_of(first[0])
        calls[_core.key(7, inputs[0], (None, 3))] = kernel.prepared(first, (None, 3), library, (zeros(context, told, here),),
                                                                    (zeros(context, told, anywhere),), no_room)
        for array, given in zip(arrays, inputs):
            expect(len(_core.call(calls, 7, given, (None, 3))) == 1, "another number of outputs")
            context.synchronize()
            near("Y", (here or anywhere)[-1].get(), 2.0 * array.host + 3.5, 0.01)
        expect((len(here), len(anywhere)) == ((3, 0) if told else (0, 3)), f"made here {len(here)}, and anywhere {len(anywhere)}")
        other = Array(context, normal(101, 64))
        for what, given, scalars in ((8, inputs[0], (None, 3)), (7, inputs[0], (None, 4)), (7, inputs[0], (1, 3)),
                                     (7, (Told(other) if told else other.memory,), (None, 3)), (7, (3,), (None, 3))):
            expect(_core.call(calls, what, given, scalars) is None, f"{what}, {given}, {scalars} is taken for another call")
        many = dict(calls)
        for key, (loaded, run_it, _, makers, *rest) in calls.items():
            many[key] = (loaded, run_it, None, makers * 17, *rest)
        try:
            _core.call(many, 7, inputs[0], (None, 3))
        except TypeError as error:
            expect("at most 16 tensors" in str(error), error)
        else:
            raise Wrong("17 outputs are made")
        kernel.unload()
        try:
            _core.call(calls, 7, inputs[0], (None, 3))
        except ValueError as error:
            expect("unloaded" in str(error), error)
        else:
            raise Wrong("an unloaded kernel is launched")


def in_a_workspace(context):
    """A call that is prepared makes its workspace, too."""
    tell(context)
    q, k, v, go = (normal(1, 70, 1, 64) for _ in range(4))
    o, l = kit.attention(q, k, v)
    inputs = tuple(Told(Array(context, x)) for x in (o.astype(numpy.float16), go, l.astype(numpy.float32), q, k, v))
    kernel, calls, sizes = schedc.load("fa3_bwd.sched", D=64), {}, []

    def gradient():
        return Told(Array(context, numpy.full((1, 70, 1, 64), numpy.nan, numpy.float16)))

    def room(size):
        def make():
            sizes.append(size)
            return Told(Array(context, numpy.full((size + 3) // 4, numpy.nan, numpy.float32)))
        return None, (make, ())
    makers = ((gradient, ()),) * 3
    calls[_core.key(0, inputs, (0.125,))] = kernel.prepared(inputs + tuple(gradient() for _ in range(3)), (0.125,), Library, makers,
                                                            makers, room)
    made = _core.call(calls, 0, inputs, (0.125,))
    context.synchronize()
    expect(len(sizes) == 1 and sizes[0] > 70 * 64 * 4, sizes)
    got = {t.name: x.array.get() for t, x in zip(kernel.tensors, inputs + made)}
    differences = schedc.load("fa3_bwd.sched", D=64, on="cpu").compare(**got)
    expect(all(d.passed for d in differences) and len(differences) == 3, differences)


def sequence(context):
    """With a workspace; and one that is too small is refused."""
    q, k, v, go = (normal(1, 70, 1, 64) for _ in range(4))
    o, l = kit.attention(q, k, v)
    inputs = {"Q": q, "K": k, "V": v, "dO": go, "O": o.astype(numpy.float16), "L": l.astype(numpy.float32)}
    kernel, dims = schedc.load("fa3_bwd.sched", D=64), {"B": 1, "M": 70, "H": 1, "N": 70, "G": 1}
    got = run(context, kernel, dims, inputs)
    differences = schedc.load("fa3_bwd.sched", D=64, on="cpu").compare(**got)
    expect(all(d.passed for d in differences) and len(differences) == 3, differences)
    try:
        memory = tuple(Array(context, got[t.name]).memory for t in kernel.tensors)
        kernel.launch(memory, stream=0)
    except schedc.Error as error:
        expect("workspace" in str(error), error)
    else:
        raise Wrong("a launch without its workspace is not refused")


def captured(context):
    x, y = Array(context, normal(100, 64)), Array(context, numpy.zeros((100, 64), numpy.float16))
    kernel = schedc.Source(kit.SCALE).kernel()
    kernel.load()
    graph = context.captured(lambda stream: kernel.launch((x.memory, y.memory), (None, 1), stream=stream))
    expect(not y.get().any(), "what is captured has run")
    context.replay(graph, context.stream())
    context.synchronize()
    near("Y", y.get(), 2.0 * x.host + 1.5, 0.01)


def refusals(context):
    x, y = Array(context, normal(100, 64)), Array(context, numpy.zeros((100, 64), numpy.float16))
    kernel = schedc.Source(kit.SCALE).kernel()
    for kind, change, words in ((ValueError, lambda: kernel.launch((x.host, y.host), (None, 1), stream=0), "in host memory"),
                                (ValueError, lambda: kernel.launch((x.memory, y.host), (None, 1), stream=0), "Y: the tensors"),
                                (TypeError, lambda: kernel.launch((x.memory,), (None, 1), stream=0), "tuple of 2 tensors"),
                                (TypeError, lambda: kernel.launch((x.memory, y.memory), (1,), stream=0), "tuple of 2 scalars"),
                                (schedc.ScheduleError, lambda: kernel.launch((x.memory, y.memory), None, stream=0), "'n'"),
                                (OSError, lambda: kernel.load(7), "device 7")):
        try:
            change()
        except kind as error:
            expect(words in str(error), f"nothing says '{words}': {error}")
        else:
            raise Wrong(f"no {kind.__name__} says '{words}'")
    kernel.launch((x.memory, y.memory), (None, 1), stream=0)  # what was good still runs
    context.synchronize()
    near("Y", y.get(), 2.0 * x.host + 1.5, 0.01)


def unloaded(context):
    x, y = Array(context, normal(100, 64)), Array(context, numpy.zeros((100, 64), numpy.float16))
    kernel = schedc.Source(kit.SCALE).kernel()
    for _ in range(2):  # it is loaded again
        kernel.launch((x.memory, y.memory), (None, 1), stream=0)
        kernel.unload()
        near("Y", y.get(), 2.0 * x.host + 1.5, 0.01)


def machine_code(context):
    kernel, other = schedc.Source(kit.SCALE).kernel(), schedc.Source(kit.SCALE).kernel(BM=128)
    cubin = kernel.build("cubin")
    kernel.load(cubin=cubin)
    x, y = Array(context, normal(100, 64)), Array(context, numpy.zeros((100, 64), numpy.float16))
    kernel.launch((x.memory, y.memory), (None, 1), stream=0)
    context.synchronize()
    near("Y", y.get(), 2.0 * x.host + 1.5, 0.01)
    try:
        other.load(cubin=cubin)
    except schedc.ScheduleError as error:
        expect(error.diagnostics[0].code == "G.cubin", error)
    else:
        raise Wrong("the machine code of another kernel is loaded")


def no_context(context):
    """JAX and others leave no context current: a launch brings the device's own, and leaves none."""
    x, y = Array(context, normal(100, 64)), Array(context, numpy.zeros((100, 64), numpy.float16))
    code = ("import sys, schedc, ctypes; so = ctypes.CDLL(sys.argv[1]); so.cuInit(0)\n"
            "k = schedc.Source(sys.argv[2]).kernel(); k.load(); c = ctypes.c_void_p(1); so.cuCtxGetCurrent(ctypes.byref(c))\n"
            "print('none' if not c.value else 'some')")
    done = subprocess.run([sys.executable, "-c", code, os.environ["SCHEDC_DRIVER"], kit.SCALE], capture_output=True,
                          encoding="utf-8", check=False)
    expect(done.stdout == "none\n", done.stdout + done.stderr)
    del x, y


def without_driver():
    """A machine without CUDA says what is missing."""
    code = "import sys, schedc\nschedc.Source(sys.argv[1]).kernel().load()"
    clean = {**os.environ, "SCHEDC_DRIVER": "/nowhere/libcuda.so", "SCHEDC_NVRTC": "/nowhere/libnvrtc.so"}
    done = subprocess.run([sys.executable, "-c", code, kit.SCALE], capture_output=True, encoding="utf-8", env=clean, check=False)
    expect(done.returncode and "OSError: no CUDA driver: /nowhere/libcuda.so" in done.stderr, done.stderr)


def lists(model):
    """A list that is not as promised ends in an error, unless the kernel trusts its lists; there it does no harm."""
    path = os.path.join(kit.ROOT, "tests", "unusual", "from_offset_to_offset.sched")
    for trusts in (True, False):
        context, kernel = Context(Driver(model)), schedc.load(path)
        kernel.trust_elements = trusts
        x, begin = DRAW.standard_normal((320, 32)).astype(numpy.float32), numpy.array([0, 2, 2, 6], numpy.int32)
        arrays = [Array(context, array) for array in (x, begin, numpy.zeros_like(x))]
        kernel.launch(tuple(array.memory for array in arrays), stream=0)
        try:
            kernel.unload()  # which waits
        except RuntimeError as error:
            expect(not trusts and "719" in str(error) and "check_elements" in str(error), error)
        else:
            expect(trusts, "no error tells that the list is not as promised")
            expect(numpy.array_equal(arrays[2].get(), 2 * x), "the blocks are not all doubled")
        context.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--only")
    args = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin with it ignored
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.abspath(args.model)
        os.environ.update(SCHEDC_DRIVER=model, SCHEDC_NVRTC=model, SCHEDC_MODEL="sms=3,devices=2")
        os.environ.setdefault("SCHEDC_CACHE", folder)
        context, checks = Context(Driver(model)), Checks(args.only)
        for function in (attention, in_eight_bits, by_gpu, tuned, tuned_there, given, called, alike, in_a_workspace, sequence, captured,
                         refusals, unloaded, machine_code, no_context):
            checks.run(function.__name__, function, context)
        checks.run("without_driver", without_driver)
        context.close()
        checks.run("lists", lists, model)
    return checks.tell()


if __name__ == "__main__":
    sys.exit(main())
