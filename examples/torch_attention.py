#!/usr/bin/env python3
"""Forward attention from schedules/fa3_stale.sched on PyTorch tensors, through ctypes.

    python3 examples/torch_attention.py [libschedc.so] [fa3_stale.sched]

The kernel is built and loaded once, for one element type, head dimension and mask; a call checks its tensors, and
enqueues one launch on PyTorch's current stream. Nothing is copied, whatever the strides, nothing waits, and calls can
be captured in a CUDA graph. Every result is compared with PyTorch's own attention: exit code 1 if one is off. Needs a
Hopper GPU, PyTorch, and NVRTC (PyTorch brings it).
"""
import ctypes as c
import os
import sys

try:
    import torch
except ImportError:
    sys.exit("this example needs PyTorch")

MAX_RANK = 6
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Tensor(c.Structure):
    _fields_ = [("name", c.c_char_p), ("data", c.c_void_p), ("type", c.c_int), ("rank", c.c_size_t),
                ("shape", c.c_int64 * MAX_RANK), ("strides", c.c_int64 * MAX_RANK)]


class Scalar(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", c.c_double)]


class Param(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", c.c_char_p)]


class Options(c.Structure):
    _fields_ = [("size", c.c_size_t), ("allocator", c.c_void_p), ("sink", c.c_void_p), ("sink_user", c.c_void_p)]


class Diagnostic(c.Structure):  # its first members, and where `rendered` is
    _fields_ = [("size", c.c_size_t), ("severity", c.c_int), ("code", c.c_char_p), ("file", c.c_char_p),
                ("where", c.c_uint32 * 6), ("text", c.c_char_p), ("help", c.c_char_p), ("notes", c.c_void_p),
                ("note_count", c.c_size_t), ("rendered", c.c_char_p)]


Sink = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(Diagnostic))


def open_library(path):
    lib = c.CDLL(path)
    handle, out = c.c_void_p, c.POINTER(c.c_void_p)
    for name, args in {
        "schedc_open": [out, c.POINTER(Options)],
        "schedc_parse": [out, handle, c.c_char_p, c.c_char_p, c.c_size_t],
        "schedc_instantiate": [out, handle, handle, c.c_char_p, c.c_char_p, c.POINTER(Param), c.c_size_t],
        "schedc_load": [out, handle, handle, c.c_void_p],
        "schedc_launch": [handle, handle, c.c_void_p, c.POINTER(Tensor), c.c_size_t, c.POINTER(Scalar), c.c_size_t, c.c_void_p,
                          c.c_size_t],
    }.items():
        getattr(lib, name).argtypes = args
    for name in ("schedc_close", "schedc_source_free", "schedc_kernel_free", "schedc_unload"):
        getattr(lib, name).argtypes, getattr(lib, name).restype = [handle], None
    return lib


class Kernel:
    """A kernel of a schedule, loaded on the current CUDA context."""

    def __init__(self, lib, path, name, **params):
        self.lib, self.reports = lib, []
        self.sink = Sink(lambda user, d: self.reports.append(d.contents.rendered.decode()))
        self.context, source, self.kernel, self.loaded = (c.c_void_p() for _ in range(4))
        options = Options(c.sizeof(Options), None, c.cast(self.sink, c.c_void_p), None)
        with open(path, "rb") as file:
            text = file.read()
        given = (Param * len(params))(*((k.encode(), str(v).encode()) for k, v in params.items()))
        self.check(lib.schedc_open(c.byref(self.context), c.byref(options)))
        self.check(lib.schedc_parse(c.byref(source), self.context, path.encode(), text, len(text)))
        self.check(lib.schedc_instantiate(c.byref(self.kernel), self.context, source, name.encode(), None, given, len(given)))
        lib.schedc_source_free(source)
        self.check(lib.schedc_load(c.byref(self.loaded), self.context, self.kernel, None))

    def check(self, status):
        reports, self.reports = self.reports, []
        if status:
            raise RuntimeError("".join(reports) or f"schedc: status {status}")

    def __call__(self, stream, tensors, scalars, workspace=None):
        """tensors and scalars (NaN: the default) in the kernel's order; workspace: a byte tensor, where it needs one."""
        given = (Tensor * len(tensors))(*map(describe, tensors))
        values = (Scalar * len(scalars))(*(Scalar(None, value) for value in scalars))
        at, size = (workspace.data_ptr(), workspace.numel()) if workspace is not None else (None, 0)
        self.check(self.lib.schedc_launch(self.context, self.loaded, stream, given, len(given), values, len(values), at, size))

    def close(self):
        self.lib.schedc_unload(self.loaded)
        self.lib.schedc_kernel_free(self.kernel)
        self.lib.schedc_close(self.context)


def describe(t):
    types = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2, torch.float8_e4m3fn: 3, torch.float8_e5m2: 4, torch.int32: 5}
    fill = [0] * (MAX_RANK - t.dim())
    return Tensor(None, t.data_ptr(), types[t.dtype], t.dim(), (c.c_int64 * MAX_RANK)(*t.shape, *fill),
                  (c.c_int64 * MAX_RANK)(*t.stride(), *fill))


class Attention:
    """O, L = attention(Q, K, V): Q [B, M, H, D], K and V [B, N, G, D], H a multiple of G. The last dimension is
    contiguous, other strides are multiples of 16 bytes, 0 where K and V are expanded."""

    def __init__(self, lib, schedule):
        self.lib, self.schedule, self.kernels = lib, schedule, {}

    def __call__(self, q, k, v, causal=False, scale=float("nan")):
        key = q.dtype, q.shape[-1], causal
        if key not in self.kernels:
            names = {torch.float16: "f16", torch.bfloat16: "bf16"}
            self.kernels[key] = Kernel(self.lib, self.schedule, "fa3_stale", T=names[q.dtype], D=q.shape[-1],
                                       causal=str(causal).lower())
        b, m, h, _ = q.shape
        o, l = torch.empty_like(q), torch.empty((b, h, m), dtype=torch.float32, device=q.device)
        self.kernels[key](torch.cuda.current_stream().cuda_stream, (q, k, v, o, l), (scale,))
        return o, l

    def close(self):
        """After the last launch has ended."""
        for kernel in self.kernels.values():
            kernel.close()
        self.kernels = {}


def pytorch(q, k, v, causal):
    """PyTorch's attention on the same tensors: it has heads before rows."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True).transpose(1, 2)


def compare(what, o, q, k, v, causal=False):
    """With PyTorch in f32; True: within two steps of O's type, for values around one half."""
    want = pytorch(q.float(), k.float(), v.float(), causal)
    error, step = (o.float() - want).abs(), torch.finfo(o.dtype).eps
    good = bool((error <= 2 * step * (0.5 + want.abs())).all())
    print(f"{what}: largest difference from PyTorch in f32 {error.max().item():.2e}{'' if good else ' - WRONG'}")
    return good


def results(attention, make):
    """Masks, types, strides, streams: whether all are right."""
    good = True
    for causal in False, True:
        q, k, v = make(1000, 16), make(1000, 4), make(1000, 4)
        good &= compare(f"causal {causal}", attention(q, k, v, causal)[0], q, k, v, causal)
    q, k, v = (make(777, 8).bfloat16() for _ in range(3))
    good &= compare("bf16", attention(q, k, v)[0], q, k, v)
    packed = make(500, 3 * 8)  # Q, K and V of a row beside each other
    q, k, v = packed[:, :, :8], packed[:, :, 8:16], packed[:, :, 16:]
    good &= compare("slices of a packed tensor", attention(q, k, v)[0], q, k, v)
    q, k, v = (make(8, 500).transpose(1, 2) for _ in range(3))  # in memory heads come before rows
    good &= compare("heads before rows", attention(q, k, v)[0], q, k, v)
    q, k, v = make(500, 8), *(make(500, 8)[:1].expand(2, -1, -1, -1) for _ in range(2))
    good &= compare("K and V of one batch for all", attention(q, k, v)[0], q, k, v)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        o, _ = attention(q, k, v)
    torch.cuda.current_stream().wait_stream(stream)
    return good & compare("on another stream", o, q, k, v)


def captured(attention, make):
    """In a CUDA graph, replayed with other inputs; and how long it takes beside PyTorch's."""
    q, k, v = make(8192, 16), make(8192, 16), make(8192, 16)
    attention(q, k, v)  # built outside of the graph
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o, _ = attention(q, k, v)
    for x in (q, k, v):
        x.normal_()
    graph.replay()
    few = slice(0, 256)
    good = compare("captured in a graph", o[:, few], q[:, few], k, v)
    for name, run in (("in a graph", graph.replay), ("PyTorch's own", lambda: pytorch(q, k, v, False))):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        for i in range(25):
            if i == 5:
                begin.record()
            run()
        end.record()
        torch.cuda.synchronize()
        ms = begin.elapsed_time(end) / 20
        print(f"b 2, h 16, n 8192, d 128, {name}: {ms:.3f} ms, {4 * 2 * 16 * 8192**2 * 128 / ms / 1e9:.0f} TFLOP/s")
    return good


def main():
    if not torch.cuda.is_available():
        sys.exit("this example needs a GPU")
    torch.zeros(1, device="cuda")  # makes the context current
    built = os.path.join(ROOT, "build", "release", "libschedc.so")
    lib = open_library(sys.argv[1] if len(sys.argv) > 1 else built if os.path.exists(built) else "libschedc.so.0.2")
    attention = Attention(lib, sys.argv[2] if len(sys.argv) > 2 else os.path.join(ROOT, "schedules", "fa3_stale.sched"))
    torch.manual_seed(0)
    make = lambda n, heads: torch.randn(2, n, heads, 128, dtype=torch.float16, device="cuda")
    good = results(attention, make) & captured(attention, make)
    torch.cuda.synchronize()
    attention.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
