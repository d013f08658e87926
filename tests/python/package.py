#!/usr/bin/env python3
"""The Python package on the CPU: kernels on NumPy's arrays and on others with DLPack, against NumPy in float64; what is told
of a kernel, against the command; exceptions, warnings and refusals.

  package.py --schedc build/release/schedc [--only REGEX]      (schedc is imported: PYTHONPATH, or a venv that has it)
"""
import argparse
import copy
import ctypes
import dataclasses
import gc
import json
import os
import pathlib
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
import weakref
from xml.etree import ElementTree

import kit
from checks import Checks, Skip, Wrong, expect
from tune import SWEPT

import numpy

import schedc

DRAW = numpy.random.default_rng(7)


def normal(*shape, dtype=numpy.float16):
    return DRAW.standard_normal(shape).astype(dtype)


def near(what, out, want, step):
    worst = numpy.abs(out.astype(numpy.float64) - want).max(initial=0)
    expect(out.shape == want.shape and worst <= step, f"{what} is off by {worst}; allowed is {step}")


def raises(kind, function, *words):
    try:
        function()
    except kind as error:
        for word in words:
            expect(word in str(error), f"nothing says '{word}': {error}")
        return error
    raise Wrong(f"no {kind.__name__} is raised")


def scale(**params):
    return schedc.Source(kit.SCALE, "scale.sched").kernel(on="cpu", **params)


# ---- calls

def whole(args):
    said = subprocess.run([args.schedc, "--version"], capture_output=True, encoding="utf-8", check=True).stdout
    expect(schedc.__version__ in said, f"the package is {schedc.__version__}, and the command says {said}")
    here = os.path.dirname(schedc.__file__)
    for name in ("py.typed", "_core.pyi", "schedules/fa3_stale.sched"):
        expect(os.path.exists(os.path.join(here, name)), f"{name} is not installed")


def by_position():
    x = normal(100, 64)
    near("Y", scale()(x, n=3), 2.0 * x + 3.5, 0.01)
    near("Y", scale()(x, n=-1, a=0.25), 0.25 * x - 0.5, 0.01)
    near("Y", scale(offset=1.5, BM=128)(X=x, n=0), 2.0 * x + 1.5, 0.01)


def into_given():
    """Into every second row of a larger array, out of every third of another; nothing else is written."""
    x, y = normal(300, 64)[::3], numpy.full((200, 64), numpy.nan, numpy.float16)
    out = scale()(x, n=0, Y=y[::2])
    expect(out.base is y, "the output that is given is not what is returned")
    near("Y", y[::2], 2.0 * x + 0.5, 0.01)
    expect(numpy.isnan(y[1::2]).all(), "rows between those of the output are written")


def with_names():
    q, k, v = normal(2, 70, 4, 64), normal(2, 90, 2, 64), normal(2, 90, 2, 64)
    out = schedc.load("fa3_stale.sched", D=64, causal=True, on="cpu")(q, k, v, scale=0.2)
    o, l = kit.attention(q, k, v, True, 0.2)
    near("O", out.O, o, 0.01)
    near("L", out[1], l, 1e-3)
    expect(out._fields == ("O", "L") and out.L.dtype == numpy.float32, f"{out._fields}, {out.L.dtype}")


def in_place():
    source = schedc.Source.read(os.path.join(kit.ROOT, "tests/corpus/accumulate.sched"))
    x, y = normal(64, 64, dtype=numpy.float32), normal(64, 64, dtype=numpy.float32)
    before = y.copy()
    kernel = source.kernel(on="cpu")
    expect(kernel(x, y) is y, "what is read and written is not returned")
    near("Y", y, before.astype(numpy.float64) + x, 1e-6)
    expect(all(d.passed for d in kernel.compare(x, y, before={"Y": before})), "the comparison with what was before")
    expect(not any(d.passed for d in kernel.compare(x, y)), "the comparison takes the result for what was before")


def no_memory_is_shared():
    copy = schedc.Source.read(os.path.join(kit.ROOT, "schedules/copy.sched")).kernel(on="cpu")
    both = normal(64, 128)
    x, y = both[:, :64], both[:, 64:]
    before = x.copy()
    raises(schedc.ScheduleError, lambda: copy(x, Y=x), "T.overlap", "shares memory with 'X'")
    copy(x, Y=y)
    expect((x == before).all() and (y == before).all(), "columns of one array")


def scalars_in_extents():
    kernel = schedc.Source.read(os.path.join(kit.ROOT, "tests/unusual/scalar_extents.sched")).kernel(on="cpu")
    expect(kernel.shape("X", n=5, H=2) == (69, 64) and kernel.shape("X", n=5, H=2, rows=7) == (7, 64), "shapes")
    raises(ValueError, lambda: kernel.shape("X", H=2), "rows")
    expect(kernel.predict(n=100, H=2).ms > 0, "a prediction")
    heads, rows = numpy.ones(2, numpy.float32), numpy.arange(164 * 64, dtype=numpy.float32).reshape(164, 64)
    taken = kernel(heads, rows, n=100)
    expect((taken.Y == rows[2:102]).all() and (taken.S == heads).all(), "an output with as many rows as a scalar says")
    expect(kernel(heads, rows, n=64, rows=164).Y.shape == (64, 64), "outputs of another call, with another scalar")
    raises(TypeError, lambda: kernel(heads, rows), "called without n")
    for n, code in ((2.5, "T.scalar"), (float("inf"), "T.scalar"), (2**40, "T.scalar")):
        raises(schedc.ScheduleError, lambda: kernel(heads, rows, n=n), code)
    raises(TypeError, lambda: kernel(heads, rows, n=-3), "is negative")


def left_out():
    """Tensors and scalars whose guard is false are none of the kernel's."""
    text = """kernel affine {
  param biased = false in { false, true }
  in  X : f32[M, N]
  in  bias : f32[R, N], gain : f32 = 2 if biased
  out Y : f32[M, N]
  require biased ? R > 1 : true
  case both { M = 64, R in { 2, 3 }, biased in { false, true } }
  role all : 1 warpgroup, 128 regs {
    reg a : f32[64, 64]
    a[i,j] = X[i,j]
    if biased { a[i,j] = gain * a[i,j] + bias[1, j] }
    Y[i,j] = a[i,j]
  }
}
"""
    source = schedc.Source(text, "affine.sched")
    x, bias = normal(64, 64, dtype=numpy.float32), normal(3, 64, dtype=numpy.float32)
    plain, biased = source.kernel(on="cpu"), source.kernel(on="cpu", biased=True)
    near("Y", plain(x), x, 1e-6)
    near("Y", biased(x, bias, gain=3), 3 * x + bias[1], 1e-5)
    for name in ("bias", "gain"):
        raises(TypeError, lambda: plain(x, **{name: bias}), f"'{name}' is not there: its guard 'biased' is false")
    raises(TypeError, lambda: plain(x, other=bias), "no tensor or scalar other")
    raises(KeyError, lambda: plain.shape("bias"), "its guard 'biased' is false")
    raises(TypeError, lambda: schedc.tune(source, on="cpu", arrays={"bias": bias}), "its guard 'biased' is false")
    raises(TypeError, lambda: biased(x), "bias")
    raises(schedc.Error, lambda: biased(x, bias[:1]), "R > 1")
    expect([b.kind for b in plain.cases["both"]] == ["dim", "absent", "param"], f"{plain.cases}")
    expect([b.kind for b in biased.cases["both"]] == ["dim", "dim", "param"], f"{biased.cases}")
    expect([t.name for t in plain.tensors] == ["X", "Y"] and not plain.scalars, f"{plain.tensors}, {plain.scalars}")


def bfloat16():
    try:
        import ml_dtypes
    except ImportError:
        raise Skip("no package ml_dtypes") from None
    x = normal(100, 64).astype(ml_dtypes.bfloat16)
    y = scale(T="bf16")(x, n=1)
    expect(y.dtype == ml_dtypes.bfloat16, f"bf16 in, {y.dtype} out")
    near("Y", y.astype(numpy.float64), 2.0 * x.astype(numpy.float64) + 1.5, 0.07)


def empty():
    y = scale()(normal(0, 64), n=0)
    expect(y.shape == (0, 64), f"no rows in, {y.shape} out")


def policies():
    kernel = schedc.load("fa3_stale.sched", D=64, on="cpu")
    q, k, v = normal(1, 70, 1, 64), normal(1, 300, 1, 64), normal(1, 300, 1, 64)
    outs = set()
    for kernel.policy, kernel.seed, kernel.threads, kernel.sms in (("early", 0, 1, 2), ("late", 0, 2, 5), ("random", 9, 1, 3)):
        outs.add(kernel(q, k, v).O.tobytes())
    expect(len(outs) == 1, "the policies disagree")


# ---- DLPack

class Pack:
    """Nothing but DLPack's two methods, as another library has them."""

    def __init__(self, array, **more):
        self.array, self.more, self.shape = array, more, array.shape

    def __dlpack__(self, **asked):
        return self.array.__dlpack__(**{**asked, **self.more})

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def packed():
    x, y = normal(100, 64), numpy.zeros((64, 100), numpy.float16)
    near("Y", scale()(Pack(x[::-1][::-1]), n=0), 2.0 * x + 0.5, 0.01)
    raises(schedc.ScheduleError, lambda: scale()(x, n=0, Y=Pack(y.T)), "'Y'")
    raises(TypeError, lambda: scale()(Pack(x.astype(complex)), n=0), "X:", "element type")
    if numpy.lib.NumpyVersion(numpy.__version__) < "2.1.0":
        raise Skip("NumPy before 2.1 has no versioned capsules")
    near("Y", scale()(Pack(x, max_version=(1, 0)), n=0), 2.0 * x + 0.5, 0.01)
    y = y.reshape(100, 64)
    y.flags.writeable = False
    raises(ValueError, lambda: scale()(x, n=0, Y=Pack(y, max_version=(1, 0))), "Y:", "may not be written")


def at_an_address():
    x, y = normal(100, 64), numpy.zeros((100, 64), numpy.float16)
    memory = lambda a: schedc.Memory(a.ctypes.data, "f16", a.shape)
    scale()(memory(x), n=0, Y=memory(y))
    near("Y", y, 2.0 * x + 0.5, 0.01)
    raises(ValueError, lambda: scale()(x, n=0, Y=schedc.Memory(y.ctypes.data, "f16", y.shape, device=0)), "different devices")


# ---- refusals

def refusals():
    kernel, x = scale(), normal(100, 64)
    raises(TypeError, lambda: kernel(x), "without n")
    raises(TypeError, lambda: kernel(n=1), "without X")
    raises(TypeError, lambda: kernel(x, x, n=1), "outputs go by name")
    raises(TypeError, lambda: kernel(x, X=x, n=1), "twice")
    raises(TypeError, lambda: kernel(x, m=1), "no tensor or scalar m", "X, Y, a, n")
    raises(TypeError, lambda: kernel([[1.0]], n=1), "X:", "list")
    raises(TypeError, lambda: kernel(x.astype(numpy.float64), n=1), "X:", "float64")
    raises(TypeError, lambda: kernel(x.astype(">f2"), n=1), "X:", ">f2")
    raises(TypeError, lambda: kernel(x[0], n=1), "X", "(64,)")
    raises(TypeError, lambda: kernel(x, n="one"), "n: a number is wanted, not str")
    raises(ValueError, lambda: scale().shape("X"), "M are not")
    raises(schedc.ScheduleError, lambda: kernel(x[:, :32], n=1), "T.shape")
    raises(schedc.ScheduleError, lambda: kernel(x.astype(numpy.float32), n=1), "'X'")
    y = numpy.zeros((100, 64), numpy.float16)
    y.flags.writeable = False
    raises(ValueError, lambda: kernel(x, n=1, Y=y), "Y:", "may not be written")
    kernel.compare(x, n=1, Y=y)  # is only read there
    fixed = x.copy()
    fixed.flags.writeable = False
    raises(ValueError, lambda: kernel.draw(fixed, n=1, Y=y.copy()), "X:", "may not be written")
    near("X", fixed, x, 0)
    raises(ValueError, lambda: schedc.load("fa3_stale.sched", on="gpu"), "'gpu'")
    for refused in (lambda: schedc.load("fa3_stale.sched", BM=7), lambda: schedc.Source("kernel k {", "open.sched").kernel()):
        error = raises(schedc.ScheduleError, refused, "")
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.status, again.diagnostics) == \
            (type(error), str(error), error.status, error.diagnostics)
    raises(ValueError, lambda: kernel.build("object"), "'object'", "cubin")
    raises(ValueError, lambda: kernel.emit("object"), "'object'", "ast, lower", "place", "cubin")
    raises(TypeError, lambda: kernel(schedc.Memory(x.ctypes.data, "f17", x.shape), n=1), "f17", "bf16")
    raises(FileNotFoundError, lambda: schedc.load("nothing.sched"), "nothing.sched", "the package has only fa3_bwd.sched, ")
    raises(TypeError, lambda: schedc.load("fa3_stale.sched", D=64)(x, x, x), "Q has the dimensions [B, M, H, 64]")
    q = normal(1, 64, 1, 64)
    raises(TypeError, lambda: schedc.load("fa3_stale.sched", D=64)(q, q, q), "host memory", "on='cpu'")


def set_wrong():
    """Settings are checked when they are set, and names that are none of a kernel's are refused; subclasses may have more."""
    kernel = scale()
    for name, value, kind, *words in (("policy", "soon", ValueError, "policy='soon'", "'early', 'late', 'random'"),
                                      ("threads", -1, ValueError, "threads", "not -1"), ("sms", -1, ValueError, "sms", "not -1"),
                                      ("seed", -1, ValueError, "seed", "from 0 to 18446744073709551615"),
                                      ("seed", 2**64, ValueError, "seed", "not 18446744073709551616"),
                                      ("seed", 1.5, TypeError, "seed: an integer is wanted, not 1.5"),
                                      ("polcy", "early", AttributeError, "no 'polcy'", "policy, seed, threads, sms and trust")):
        raises(kind, lambda: setattr(kernel, name, value), *words)
    expect((kernel.policy, kernel.seed, kernel.threads, kernel.sms) == ("late", 0, 0, 0), "what is refused is set")
    kernel.policy, kernel.seed, kernel.threads, kernel.sms, kernel.trust_elements = "random", 2**64 - 1, numpy.int64(1), 3, True
    x = normal(100, 64)
    near("Y", kernel(x, n=1), 2.0 * x + 1.5, 0.01)
    expect(copy.copy(kernel).seed == 2**64 - 1 and weakref.ref(kernel)() is kernel, "copies, and weak references")
    more = type("More", (schedc.Kernel,), {})(kernel._handle, on="cpu")
    more.note = "mine"
    raises(ValueError, lambda: setattr(more, "seed", -1), "seed")


def listed():
    """dir() has what users are meant to see: also what is imported late, if it can be; and not what a module imports."""
    names = [name for name in dir(schedc) if not name.startswith("_")]
    absent = set(schedc.__all__) - set(names)
    expect(not set(names) - set(schedc.__all__) and all("attn" in name for name in absent), f"listed are {names}")
    code = ("import sys, types; sys.modules['torch'] = types.ModuleType('torch') if sys.argv[1] else None\n"
            "import schedc; print(sorted(set(schedc.__all__) ^ {n for n in dir(schedc) if n[0] != '_'}), "
            "[n for n in schedc.__all__ if 'attn' in n]); help(schedc.Store)\n"
            "if not sys.argv[1]: exec('from schedc import *'); print(Store is schedc.Store)")
    of_torch = ["flash_attn_fp8_func", "flash_attn_func", "flash_attn_varlen_func"]
    for torch, there in (("1", of_torch), ("", [])):
        done = subprocess.run([sys.executable, "-c", code, torch], capture_output=True, encoding="utf-8", timeout=60)
        expect(done.returncode == 0 and done.stdout.startswith(f"[] {there}\n") and (torch or done.stdout.endswith("True\n")),
               done.stdout[:300] + done.stderr)


def by_path():
    """Paths are texts, bytes or objects with __fspath__."""
    path = os.path.join(kit.ROOT, "schedules/copy.sched")
    for way in (path, path.encode(), pathlib.Path(path)):
        expect(schedc.load(way, on="cpu").name == "copy", way)
    expect(schedc.load(b"fa3_stale.sched", on="cpu").name == "fa3_stale", "one of the package's")
    expect(schedc.Store(b"/nowhere/s.jsonl").path == "/nowhere/s.jsonl", "the path of a store")
    for way in (None, 3, [path]):
        raises(TypeError, lambda: schedc.load(way), "str, bytes or os.PathLike", type(way).__name__)


def without_torch():
    """What needs PyTorch says so where there is none."""
    code = "import sys, schedc; sys.modules['torch'] = None; schedc.flash_attn_func"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=60)
    expect("ModuleNotFoundError: schedc.flash_attn_func is called on PyTorch's tensors" in done.stderr, done.stderr)


def diagnosed(args):
    """An exception says what the command says as JSON."""
    path = os.path.join(kit.ROOT, "tests/bad/R3.release.sched")
    said = subprocess.run([args.schedc, "check", "--format", "json", path], capture_output=True, encoding="utf-8", check=False)
    want = json.loads(said.stdout)[0]
    error = raises(schedc.ScheduleError, lambda: schedc.load(path), "R3.release", "^")
    d = error.diagnostics[0]
    expect((d.severity, d.code, d.text, d.help) == tuple(want[n] for n in ("severity", "code", "text", "help")), d)
    expect(d.file == path and error.status == "SCHEDC_EINPUT", f"{d.file}, {error.status}")
    expect(len(d.notes) == len(want["notes"]) == 2, d.notes)
    text = open(path, "rb").read()
    at = d.range
    expect(text[at.offset:at.offset + at.length] == b"v" and text.split(b"\n")[at.line - 1][at.column - 1:] == b"v",
           f"{at} is not where v is released")
    expect(d.notes[0].text == want["notes"][0]["text"] and d.notes[0].range.line == at.line - 1, d.notes[0])
    expect(schedc.explain(d.code) in said_of(args, d.code) and schedc.explain("none") is None, "explain")


def said_of(args, code):
    return subprocess.run([args.schedc, "explain", code], capture_output=True, encoding="utf-8", check=True).stdout


def of_params():
    raises(schedc.ScheduleError, lambda: scale(BM=96), "BM", "scale.sched")
    raises(schedc.ScheduleError, lambda: scale(colour="red"), "colour")
    raises(schedc.ScheduleError, lambda: schedc.Source("kernel {", "half.sched"), "half.sched:1:8")


def as_libraries_name_them():
    """Element types, truths and integers of NumPy's as values of params."""
    for value in (numpy.float32, numpy.dtype("float32"), "f32", "float32"):
        expect(scale(T=value, BM=numpy.int64(128)).params["T"].value == "f32", value)
    for name, value in (("float16", "f16"), ("bfloat16", "bf16")):
        expect(scale(T=name).params["T"].value == value and schedc.tune(schedc.Source(kit.SCALE), on="cpu", dims={"M": 64}, T=name, BM=64,
                                                                        arrays={"n": 1}).best is not None, name)
    stale = schedc.load("fa3_stale.sched", on="cpu", causal=numpy.bool_(True))
    expect(stale.params["causal"].value is True, stale)
    for value in (numpy.float64, "float64"):
        raises(schedc.ScheduleError, lambda: scale(T=value), "float64", "element types are f32, f16, bf16, e4m3, e5m2 and i32")


def warned():
    """A warning is one of Python's, at the line that made the call."""
    path = os.path.join(kit.ROOT, "tests/bad/R5.empty.sched")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        schedc.load(path)
    expect([type(w.message) for w in seen] == [schedc.ScheduleWarning], seen)
    expect(seen[0].message.diagnostic.code == "R5.empty" and seen[0].filename == __file__, f"{seen[0]}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        raises(schedc.ScheduleWarning, lambda: schedc.load(path), "brings nothing")


def rejected():
    path = os.path.join(kit.ROOT, "tests/bad/R3.release.sched")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        schedc.load(path, unverified=True)
    expect([w.message.diagnostic.code for w in seen] == ["R3.release"], "what is unverified is not a warning")
    path = os.path.join(kit.ROOT, "tests/faults/second_tile.sched")
    kernel = schedc.load(path, case="small", on="cpu")
    raises(schedc.ScheduleError, kernel.verify, "R6.dealt")
    dims = {b.name: int(b.values[0]) for b in kernel.cases["small"] if b.kind == "dim"}
    kernel.sms = 1
    arrays = [numpy.zeros(kernel.shape(t.name, **dims), numpy.float16 if t.type == "f16" else numpy.float32)
              for t in kernel.tensors if t.direction == "in"]
    error = raises(schedc.FaultError, lambda: kernel(*arrays), "X.phase")
    expect(error.status == "SCHEDC_EFAULT", error.status)


# ---- what is told

def told(args):
    path = os.path.join(kit.ROOT, "schedules/fa3_stale.sched")
    kernel = schedc.load(path, D=64)
    said = json.loads(subprocess.run([args.schedc, "info", path, "-p", "D=64", "--format", "json"], capture_output=True,
                                     encoding="utf-8", check=True).stdout)[0]
    text = lambda v: str(v).lower() if isinstance(v, bool) else str(v)
    expect([(p.name, text(p.value), [text(v) for v in p.domain]) for p in kernel.params.values()] ==
           [(p["name"], p["value"], p["domain"]) for p in said["parameters"]], "params")
    expect([(t.name, t.type, t.direction, list(t.dims)) for t in kernel.tensors] ==
           [(t["name"], t["type"], t["direction"], t["dims"]) for t in said["tensors"]], "tensors")
    found = kernel.certificates["fa3_stale"]
    expect(found.verdict == said["certificate"]["verdict"] == kernel.verify() == "proved for all trip counts", found)
    expect([p.statement for p in found.proofs] == [p["statement"] for p in said["certificate"]["proofs"]], found)
    expect(kernel.params["causal"].value is False and kernel.params["D"].value == 64, kernel.params)
    expect(kernel.scalars == (schedc.Scalar("scale", "f32", True),) and kernel.dims == ("B", "M", "H", "N", "G"), kernel.dims)
    expect(kernel.shape("L", B=2, H=3, M=5) == (2, 3, 5), "shape")
    raises(ValueError, lambda: kernel.shape("L", B=2), "given: M, H are not")
    whole_text = kernel.describe(B=1, M=64, N=64, H=1, G=1)[0]
    expect(whole_text["grid"][1]["value"] == 1, whole_text["grid"])
    dealt = schedc.load(os.path.join(kit.ROOT, "schedules/gemm_pingpong.sched")).describe()[0]["certificate"]["rings"]
    expect([(r["name"], "least_stages" in r) for r in dealt][-1] == ("c", False), f"of tiles dealt, no wait tells the depth: {dealt}")
    longer = kernel.describe(B=1, M=640, N=640, H=1, G=1)[0]
    expect([s["name"] for s in longer["scalars"]] == ["scale"] and "sqrt" in longer["scalars"][0]["default"], longer["scalars"])
    expect("H % G == 0" in longer["requires"], longer["requires"])
    expect(longer["grid_kind"] == "dynamic" and [a["reversed"] for a in longer["grid"]] == [False, True, False], longer["grid"])
    blocks = [b for r in longer["roles"] if r["name"] == "math" for o in r["operations"] for b in o["inside"]]
    expect({b["text"]: b["times"] for b in blocks if "times" in b} == {"for t in reversed 0 .. last - 1": 4}, blocks)


def cases_and_units():
    source = schedc.Source(kit.SCALE, "scale.sched")
    expect(source.units == (schedc.Unit("scale", False, ("two",)),), source.units)
    bound = {b.name: b for b in source.kernel().cases["two"]}
    expect(bound["BM"] == schedc.Binding("BM", "param", True, ("64", "128")), bound)
    expect(bound["M"].kind == "dim" and bound["n"].kind == "scalar" and bound["M"].values == ("100",), bound)
    units = {u.name: u for u in schedc.Source.read("fa3_bwd.sched").units}
    expect(units["fa3_bwd"].is_sequence and not units["backward"].is_sequence, units)
    before = {t.name: t.direction for t in schedc.load("fa3_bwd.sched").given().tensors}
    expect(before["O"] == before["L"] == "out" and before["Q"] == before["dQ"] == "in", before)
    expect(schedc.load("fa3_stale.sched").given() is None, "given")
    expect(set(schedc.load("fa3_bwd.sched").certificates) == {"prepare", "backward", "convert", "convert_keys"}, "certificates")


def texts(args):
    formatted = subprocess.run([args.schedc, "fmt", "-"], input=kit.SCALE.encode(), capture_output=True, check=True).stdout
    expect(schedc.Source(kit.SCALE).format().encode() == formatted, "format")
    path = os.path.join(kit.ROOT, "schedules/copy.sched")
    run = lambda *command: subprocess.run([args.schedc, *command], capture_output=True, check=True).stdout
    kernel = schedc.load(path, BM=32)
    expect(kernel.build("cuda") == run("build", path, "-p", "BM=32", "--to", "cu", "-o", "-"), "CUDA C")
    expect(kernel.emit("place").encode() == run("check", path, "-p", "BM=32", "--emit=place"), "emit")


def predicted(args):
    """As the command says it; with dimensions and scalars by name."""
    path, dims = os.path.join(kit.ROOT, "schedules/gemm.sched"), {"M": 4096, "N": 2048, "K": 4096}
    command = [args.schedc, "info", path, *(word for d, n in dims.items() for word in ("--set", f"{d}={n}"))]
    told = subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout
    kernel = schedc.load(path, on="cpu")
    said = kernel.predict(**dims)
    expect(f"predicted on an H200: {said.ms:.3f} ms at {said.clock_mhz:.0f} MHz" in told, said)
    expect(f"bound by {said.bound}" in told, said)
    raises(ValueError, lambda: kernel.predict(M=64, N=64), "the shape of A")
    raises(ValueError, lambda: kernel.predict(**dims, L=64), "has no dimension L")
    raises(ValueError, lambda: kernel.predict(**{**dims, "M": -1}), "dims: M: an integer from 0")
    expect(scale().predict(M=1000, n=3) == scale().predict(M=1000, n=3, a=1.5), "scalars change what is taken")
    raises(schedc.ScheduleError, lambda: scale().predict(M=1000), "'n'")
    lengths = {"B": 1, "TQ": 64, "TK": 64, "H": 1, "G": 1}
    raises(schedc.ScheduleError, lambda: schedc.load("fa_varlen.sched", on="cpu").predict(**lengths, maxq=64), "cq")


def compared():
    kernel, x = scale(), normal(100, 64)
    y = kernel(x, n=3)
    good = kernel.compare(x, n=3, Y=y)[0]
    y[40, 7] += 1
    bad = kernel.compare(x, n=3, Y=y)[0]
    expect(good.passed and not bad.passed and bad.worst == [40, 7], f"{good}, {bad}")
    expect(abs(bad.max_error - 1) < 0.02 and bad.total == 6400 and bad.tensor == "Y", bad)
    raises(TypeError, lambda: kernel.compare(x, n=3), "without Y")
    q = normal(1, 64, 1, 64)
    expect(schedc.load("fa3_stale.sched", D=64, on="cpu").work(q, q, q).said == 4 * 64 * 64 * 64, "work")


# ---- threads, signals, memory

def drawn(args):
    """`schedc run` writes what a copy has of the input that it draws."""
    path = os.path.join(kit.ROOT, "schedules/copy.sched")
    kernel = schedc.load(path, T="f32", on="cpu")
    x, y = normal(70, 64, dtype=numpy.float32), normal(70, 64, dtype=numpy.float32)
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "y.npy")
        subprocess.run([args.schedc, "run", path, "-p", "T=f32", "--set", "M=70", "--set", "N=64", "--on", "cpu", "--inputs", "spike",
                        "--seed", "7", "--out", f"Y={out}"], check=True, stdout=subprocess.DEVNULL)
        kernel.draw(x, Y=y, kind="spike", seed=7)
        expect((x == numpy.load(out)).all() and numpy.isnan(y).all(), "not what the command draws")
    raises(ValueError, lambda: kernel.draw(x, Y=y, kind="nice"), "nice")
    raises(TypeError, lambda: kernel.draw(x), "without Y")
    on_a_gpu = [schedc.Memory(a.ctypes.data, "f32", a.shape, device=0) for a in (x, y)]
    raises(ValueError, lambda: kernel.draw(on_a_gpu[0], Y=on_a_gpu[1]), "host memory")


def stored():
    """Records as the file has them; kernels with the params of the one that fits, over which those go that are given."""
    source, problem = schedc.Source(kit.SCALE, "scale.sched"), {"T": "f16", "offset": "0.5"}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s.jsonl")
        expect(len(schedc.Store(path)) == 0, "a store that is not there has records")
        with open(path, "w", encoding="utf-8") as file:
            file.write(kit.line(source, {"BM": "64"}, {"M": 8}, "scale", problem=problem, rank=7, launches=2**40))
            file.write("\n" + kit.line(source, {"BM": "128"}, {"M": 1000}, "scale", problem=problem))
        store = schedc.Store(path)
        first, last = store
        expect((first.rank, first.launches, first.line, first.dims, first.tuning) == (7, 2**40, 1, {"M": 8}, {"BM": "64"}), first)
        expect((last.line, last.gpu, last.sustained_ms, last.reference_ms, last.problem) == (3, "a GPU", 0.5, 1.0, problem), last)
        found = store.find(schedule=source.schedule(), unit="scale", problem={"T": "f16", "offset": 0.5}, dims={"M": 900})
        expect(found == last, f"found is {found}")
        expect(store.find(schedule="", unit="scale", problem=problem, dims={"M": 900}) is None, "of another schedule")
        for more, block, line in (({"dims": {"M": 1024}}, 128, 3), ({"dims": {"M": 9}}, 64, 1), ({"dims": {"M": 10**6}}, 64, None),
                                  ({"dims": {"M": 1024}, "gpu": "another"}, 64, None), ({"dims": {"M": 1024}, "BM": 64}, 64, None),
                                  ({"dims": {"M": 1024}, "gpu": "a GPU", "T": "f32"}, 64, None)):
            for which in (store, path):
                kernel = source.kernel(on="cpu", store=which, **more)
                got = kernel.params["BM"].value, kernel.record and kernel.record.line
                expect(got == (block, line), f"with {more} it has {got}")
        x = normal(1000, 64)
        near("Y", source.kernel(on="cpu", store=store, dims={"M": 1000})(x, n=1), 2.0 * x + 1.5, 0.01)
        expect(scale().record is None, "a record that nobody asked for")
        raises(ValueError, lambda: source.kernel(on="cpu", store=store), "dims")
        for which in (store, None):
            wrong = lambda **dims: lambda: source.kernel(on="cpu", store=which, dims=dims)
            raises(ValueError, wrong(Q=64), "no dimension Q, and M is missing; the dimensions of scale are M")
            raises(ValueError, wrong(M=64, n=1), "no dimension n; the")
            raises(ValueError, wrong(), "M is missing")
            raises(ValueError, wrong(M=-4), "dims: M", "not -4")
            raises(TypeError, wrong(M=4.5), "dims: M", "not 4.5")
        nowhere = os.path.join(folder, "nowhere.jsonl")
        error = raises(FileNotFoundError, lambda: source.kernel(on="cpu", store=nowhere, dims={"M": 1024}), "store", "nowhere.jsonl")
        expect(error.filename == nowhere, error)
        with open(path, "a", encoding="utf-8") as file:
            file.write("kernel\n")
        raises(schedc.ScheduleError, lambda: schedc.Store(path), "F.store", "s.jsonl:4")


def extended():
    """Records that are added, and those of another store that are not here yet."""
    source, problem = schedc.Source(kit.SCALE, "scale.sched"), {"T": "f16", "offset": "0.5"}
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("a.jsonl", "b.jsonl")]
        for path, dims in zip(paths, (((8, 64), (9, 128)), ((9, 128), (700, 64)))):
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(kit.line(source, {"BM": str(b)}, {"M": m}, "scale", problem=problem) for m, b in dims)
        a, b = map(schedc.Store, paths)
        expect([a.merge(b), a.merge(paths[1]), len(a)] == [1, 0, 3], f"{len(a)} records are there")
        a.add(dataclasses.replace(b[0], dims={"M": 5000}, launches=2**40, noise=0.25, tuning={"BM": "64"}))
        again = schedc.Store(paths[0])
        expect([r.dims["M"] for r in again] == [8, 9, 700, 5000] == [r.dims["M"] for r in a], list(again))
        expect([r.line for r in a] == [1, 2, 0, 0] and again[3].line == 4, list(a))
        last = again[3]
        expect((last.launches, last.noise, last.tuning, last.problem) == (2**40, 0.25, {"BM": "64"}, problem), last)
        expect(source.kernel(on="cpu", store=a, dims={"M": 5001}).record == a[3], "what was added is not found")
        for name, value in (("noise", -1.0), ("sustained_ms", float("nan")), ("cold_ms", float("inf")), ("reference_ms", -2),
                            ("rank", -1), ("launches", -1), ("driver", 2**32)):
            raises(ValueError, lambda: a.add(dataclasses.replace(last, **{name: value})), name, f"{value}")
        raises(ValueError, lambda: a.add(dataclasses.replace(last, dims={"M": -1})), "M", "not -1")
        raises(TypeError, lambda: a.add(None), "a Record is wanted, not NoneType")
        raises(FileNotFoundError, lambda: a.merge(os.path.join(folder, "none.jsonl")), "none.jsonl")
        expect(len(schedc.Store(paths[0])) == 4, "a record that is none was written")


def by_default():
    """The store that SCHEDC_STORE names, for kernels with dims; on the CPU no table."""
    source, problem = schedc.Source(kit.SCALE, "scale.sched"), {"T": "f16", "offset": "0.5"}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(kit.line(source, {"BM": "128"}, {"M": 8}, "scale", problem=problem))
        for store, dims, block in ((path, {"M": 8}, 128), ("", {"M": 8}, 64), (None, {"M": 8}, 64), (path, None, 64)):
            with kit.variable("SCHEDC_STORE", store):
                kernel = source.kernel(on="cpu", dims=dims)
            expect(kernel.params["BM"].value == block, f"SCHEDC_STORE={store}, dims {dims}: {kernel}")


def searched():
    """By the cost model, the finalists interpreted; and by a measure of the caller's, whose exceptions come out."""
    large = {"M": 4096, "N": 4096, "K": 4096}
    gemm = os.path.join(kit.ROOT, "schedules", "gemm.sched")
    found = schedc.tune(gemm, on="cpu", dims=large, strategy="exhaustive", turns=1, top=3)
    expect(found.best.verified and found.best.ratio < 1 and not found.best.is_default, found)
    expect(all(abs(c.ms - c.predicted_ms) < 1e-9 for c in found.candidates if c.rungs), "another time than the cost model's")
    expect(found.kernel().on == "cpu" and {n: str(p.value) for n, p in found.kernel().params.items() if n in found.best.params}
           == found.best.params, found.kernel())
    listed = schedc.Source(kit.SCALE.replace("in n : i32", "in n : i32, f : f32[2, M]").replace("n = 3 }", "n = 3, f = [0.5, 2] }")
                           .replace("offset + n", "f[0, i]", 1).replace("offset + n", "f[0, x*BM + i]"), "listed.sched")
    found = schedc.tune(listed, on="cpu", dims={"M": 4096}, arrays={"n": 1}, turns=1)
    expect(found.best is not None and found.best.verified, f"a case that lists reals of two dimensions: {found}")
    source, trials = schedc.Source(SWEPT, "swept.sched"), []

    def measure(kernel, trial):
        trials.append(trial)
        b = kernel.params["B"].value
        if b == 3:
            kernel.verify()
        return b != 6 if trial.verify else 10.0 / b
    found = schedc.tune(source, on="cpu", dims={"M": 64}, measure=measure, top=5)
    expect(found.best.params == {"B": "4"} and found.best.ms == 2.5 and found.best.ratio == 0.25, found)
    expect({c.params["B"]: c.failed for c in found.candidates if c.failed} == {"6": "wrong", "3": "R5.agree"}, found)
    expect(any(t.is_reference for t in trials) and any(t.is_final for t in trials), trials)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "won.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(kit.line(source, {"B": "6"}, {"M": 8}, "swept", schedule="0" * 32))
        trials.clear()
        schedc.tune(source, on="cpu", dims={"M": 64}, measure=measure, winners=path)
        expect([t.params["B"] for t in trials[:2]] == ["1", "6"], trials[:4])
    raises(FileNotFoundError, lambda: schedc.tune(source, on="cpu", dims={"M": 64}, measure=measure, winners=path), "won.jsonl")
    for wrong, kind in ((lambda k, t: 1 / 0, ZeroDivisionError), (lambda k, t: 0.0, ValueError), (lambda k, t: "fast", TypeError)):
        raises(kind, lambda: schedc.tune(source, on="cpu", dims={"M": 64}, measure=wrong))
    told = []
    no_case = schedc.Source(re.sub("  case .*\n", "", SWEPT), "swept.sched")
    raises(ValueError, lambda: schedc.tune(no_case, on="cpu", dims={"M": 64}, progress=told.append), "swept has no case")
    expect(not told, "programs are measured that could not be verified then")
    raises(schedc.ScheduleError, lambda: schedc.tune(source, on="cpu", dims={"M": 64}, B=5), "R8.smem")


def searched_wrong():
    """What a search is not told rightly, it says before it begins; of what a measure returns, at once."""
    source, told = schedc.Source(SWEPT, "swept.sched"), []
    tune = lambda **more: lambda: schedc.tune(source, **{"on": "cpu", "dims": {"M": 64}, "progress": told.append, **more})
    for on in ("tpu", "model"):
        raises(ValueError, tune(on=on), f"on='{on}'", "'cuda'", "'cpu', where the cost model")
    raises(ValueError, tune(strategy="best"), "strategy='best'", "'halving', 'exhaustive', 'model'")
    for name, value in (("seconds", -1), ("seconds", float("nan")), ("brief_ms", 0), ("final_ms", -1), ("top", -1), ("jobs", -2)):
        raises(ValueError, tune(**{name: value}), name, f"{value}", "from 0" if name in ("top", "jobs") else "a number above 0")
    raises(ValueError, tune(dims={"Q": 4}), "no dimension Q, and M is missing; the dimensions of swept are M")
    raises(ValueError, tune(dims=None), "M is missing; the dimensions of swept are M")
    raises(ValueError, tune(dims={"M": -4}), "M", "not -4")
    raises(TypeError, tune(dims={"M": 4.5}), "M", "not 4.5")
    raises(TypeError, tune(arrays={"Z": 1}), "no tensor or scalar Z")
    raises(ValueError, tune(store="s.jsonl"), "store= goes with neither measure= nor on='cpu'")
    expect(not told, "something was measured")
    raises(ValueError, tune(dims={"M": 0}), "dims: with M=0 the cost model has no time for swept")
    right = lambda said: lambda kernel, trial: said if trial.verify else 1.0 + kernel.params["B"].value
    for said in (1.0, 1, None, "yes", numpy.float64(1)):
        raises(TypeError, tune(measure=right(said)), "True or False is wanted", repr(said))
    for good in (True, numpy.bool_(True)):
        expect(schedc.tune(source, dims={"M": 64}, measure=right(good)).best.params == {"B": "1"}, f"{good!r}")
        expect(schedc.tune(source, dims={"M": 64}, measure=right(not good)).best is None, f"{not good!r}")
    fast = lambda said: lambda kernel, trial: True if trial.verify else said
    for said in (None, "x", True, numpy.bool_(True), [1.0]):
        raises(TypeError, tune(measure=fast(said)), "milliseconds are wanted, a number above 0", repr(said))
    for said in (0, -1.0, float("nan"), float("inf")):
        raises(ValueError, tune(measure=fast(said)), "milliseconds are wanted, a number above 0", f"{float(said)}")
    expect(schedc.tune(source, dims={"M": 64}, measure=fast(numpy.float32(2))).best.ms == 2, "a number of NumPy's")


def in_threads():
    q, k, v = normal(1, 70, 1, 64), normal(1, 90, 1, 64), normal(1, 90, 1, 64)
    kernel, outs = schedc.load("fa3_stale.sched", D=64, on="cpu"), []

    def run(number):
        outs.append((kernel if number % 2 else schedc.load("fa3_stale.sched", D=64, on="cpu"))(q, k, v).O.tobytes())
    threads = [threading.Thread(target=run, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    expect(len(outs) == 6 and len(set(outs)) == 1, f"{len(outs)} threads ended, with {len(set(outs))} results")


def interrupted():
    """Ctrl-C ends a run and a comparison, and Python sees it."""
    q = normal(1, 8000, 8, 64)  # a minute, if nothing ends it
    o, l = numpy.empty_like(q), numpy.empty((1, 8, 8000), numpy.float32)
    kernel = schedc.load("fa3_stale.sched", D=64, on="cpu")
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    for what, call in (("run", lambda: kernel(q, q, q)), ("comparison", lambda: kernel.compare(q, q, q, O=o, L=l))):
        begun = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            raises(KeyboardInterrupt, call)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        expect(time.monotonic() - begun < 5, f"the {what} goes on for seconds")
    signal.signal(signal.SIGALRM, before)


KEPT = 150  # bytes a round of `all_of_it` may keep


class InUse(ctypes.Structure):
    """What mallinfo2 of glibc returns."""
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "free", "fast", "mapped", "mapped_bytes", "most", "fast_bytes",
                                                     "bytes", "free_bytes", "top")]


def count_leaks():
    """Bytes that calls and errors keep, of one round. Caches of Python and NumPy fill in the first hundreds of rounds, so
    rounds are counted until they keep next to nothing, or never do."""
    count, path = ctypes.CDLL(None).mallinfo2, os.path.join(kit.ROOT, "tests/bad/R3.release.sched")
    count.restype, core = InUse, schedc._core
    kernel, x = scale(), normal(100, 64)
    kernel.threads = 1
    source = schedc.Source(kit.SCALE, "scale.sched")
    folder = tempfile.mkdtemp()
    stored = os.path.join(folder, "s.jsonl")
    with open(stored, "w", encoding="utf-8") as file:
        file.write(kit.line(source, {"BM": "128"}, {"M": 8}, "scale", problem={"T": "f16", "offset": "0.5"}))

    def tuned():
        store = schedc.Store(stored)
        expect(source.kernel(on="cpu", store=store, dims={"M": 8}).record == store[0], "the record")
        store.find(schedule="", unit="scale", problem={}, dims={"M": 8}), store.merge(stored)
        raises(ValueError, lambda: store.add(dataclasses.replace(store[0], noise=-1.0)))
        schedc.tune(source, on="cpu", dims={"M": 8}, arrays={"n": 1}, measure=lambda k, t: True if t.verify else 1.0,
                    progress=lambda at: None)
        raises(ZeroDivisionError, lambda: schedc.tune(source, on="cpu", dims={"M": 8}, arrays={"n": 1}, measure=lambda k, t: 1 / 0))

    def all_of_it():
        tuned()
        y = kernel(x, n=1)
        kernel.compare(x, n=1, Y=y), kernel.describe(), kernel.params, kernel.cases, kernel.certificates
        core.instantiate(core.parse("scale.sched", kit.SCALE.encode()), None, None, (("BM", "128"),), False)
        kernel(Pack(x), n=1)
        raises(schedc.ScheduleError, lambda: schedc.load(path))
        raises(schedc.ScheduleError, lambda: kernel(x[:, :32], n=1))
        raises(TypeError, lambda: kernel(x.astype(numpy.float64), n=1))
        gc.collect()
    for batch in range(16):
        before = count()
        for _ in range(60):
            all_of_it()
        after = count()
        kept = (after.bytes + after.mapped_bytes - before.bytes - before.mapped_bytes) // 60
        if batch and kept < KEPT:
            break
    shutil.rmtree(folder)
    print(kept)


def without_leaks():
    """Neither calls nor errors keep memory: all that Python allocates is malloc's, which counts it."""
    done = subprocess.run([sys.executable, __file__, "--schedc", "", "--count-leaks"], capture_output=True, encoding="utf-8",
                          env={**os.environ, "PYTHONMALLOC": "malloc"}, check=False)
    expect(done.returncode == 0, done.stderr)
    expect(int(done.stdout) < KEPT, f"a round keeps {done.stdout.strip()} bytes")


def in_valgrind(args):
    """Calls, errors and threads touch no memory that is not theirs. CPython and NumPy have reports of their own: those count
    in which the extension module takes part."""
    if not shutil.which("valgrind"):
        raise Skip("no valgrind")
    calls = ("by_position|into_given|with_names|refusals|of_params|warned|rejected|compared|stored|in_threads|texts|"
             "predicted")
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log.xml")
        done = subprocess.run(["valgrind", "-q", "--leak-check=full", "--show-leak-kinds=definite", "--num-callers=40", "--xml=yes",
                               f"--xml-file={log}", sys.executable, __file__, "--schedc", args.schedc, "--only", calls],
                              capture_output=True, encoding="utf-8", env={**os.environ, "PYTHONMALLOC": "malloc"}, check=False)
        expect(done.returncode == 0, done.stdout + done.stderr)
        reports = ElementTree.parse(log).findall("error")
    module = os.path.basename(schedc._core.__file__)
    ours = [one for one in reports if any(os.path.basename(of.text) == module for of in one.iter("obj"))]
    expect(not ours, "\n".join(f"{one.findtext('kind')} in {[of.text for of in one.iter('fn')][:12]}" for one in ours))


def typed():
    """The package as a user's type checker sees it."""
    done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", os.path.join(kit.ROOT, "pyproject.toml")],
                          capture_output=True, encoding="utf-8", cwd=kit.ROOT, check=False)
    if "No module named mypy" in done.stderr:
        raise Skip("no mypy")
    expect(done.returncode == 0, done.stdout + done.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", required=True)
    parser.add_argument("--only")
    parser.add_argument("--count-leaks", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.count_leaks:
        return count_leaks()
    checks = Checks(args.only)
    for function in (by_position, into_given, with_names, in_place, no_memory_is_shared, scalars_in_extents, left_out, bfloat16, empty, policies,
                     packed, at_an_address, refusals, set_wrong, listed, by_path, without_torch, of_params, as_libraries_name_them, warned, rejected, cases_and_units, compared, stored, extended, by_default, searched, searched_wrong, in_threads, interrupted, without_leaks, typed):
        checks.run(function.__name__, function)
    for function in (whole, diagnosed, told, texts, predicted, drawn, in_valgrind):
        checks.run(function.__name__, function, args)
    return checks.tell()


if __name__ == "__main__":
    sys.exit(main())
