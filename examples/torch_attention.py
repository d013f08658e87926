#!/usr/bin/env python3
"""FlashAttention-3 forward from schedules/fa3_fwd.sched on PyTorch tensors, through ctypes.

    python3 examples/torch_attention.py [libschedc.so] [fa3_fwd.sched]

The kernel is built and loaded once, for one element type, head dimension and mask; a call checks its tensors, and
enqueues one launch on PyTorch's current stream. Nothing is copied, nothing waits, and calls can be captured in a
CUDA graph. Needs a Hopper GPU, PyTorch, and NVRTC (PyTorch brings it).
"""
import ctypes as c
import glob
import os
import sys

MAX_RANK = 6
HERE = os.path.dirname(os.path.abspath(__file__))


class Tensor(c.Structure):
    _fields_ = [("name", c.c_char_p), ("data", c.c_void_p), ("type", c.c_int), ("rank", c.c_size_t),
                ("shape", c.c_int64 * MAX_RANK), ("strides", c.c_int64 * MAX_RANK)]


class Param(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", c.c_char_p)]


class Options(c.Structure):
    _fields_ = [("size", c.c_size_t), ("allocator", c.c_void_p), ("sink", c.c_void_p), ("sink_user", c.c_void_p)]


class Diagnostic(c.Structure):  # its first members, and where `rendered` is
    _fields_ = [("size", c.c_size_t), ("severity", c.c_int), ("code", c.c_char_p), ("file", c.c_char_p),
                ("where", c.c_uint32 * 6), ("text", c.c_char_p), ("help", c.c_char_p), ("notes", c.c_void_p),
                ("note_count", c.c_size_t), ("rendered", c.c_char_p)]


Sink = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(Diagnostic))


def open_library(path=None):
    lib = c.CDLL(path or os.environ.get("SCHEDC_LIBRARY", "libschedc.so"))
    handle, out = c.c_void_p, c.POINTER(c.c_void_p)
    for name, args in {
        "schedc_open": [out, c.POINTER(Options)],
        "schedc_parse": [out, handle, c.c_char_p, c.c_char_p, c.c_size_t],
        "schedc_instantiate": [out, handle, handle, c.c_char_p, c.c_char_p, c.POINTER(Param), c.c_size_t],
        "schedc_load": [out, handle, handle, c.c_void_p],
        "schedc_workspace_size": [handle, handle, c.POINTER(Tensor), c.POINTER(c.c_double), c.POINTER(c.c_size_t)],
        "schedc_launch": [handle, handle, c.c_void_p, c.POINTER(Tensor), c.POINTER(c.c_double), c.c_void_p, c.c_size_t],
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
        values = (c.c_double * len(scalars))(*scalars)
        at, size = (workspace.data_ptr(), workspace.numel()) if workspace is not None else (None, 0)
        self.check(self.lib.schedc_launch(self.context, self.loaded, stream, given, values, at, size))

    def close(self):
        self.lib.schedc_unload(self.loaded)
        self.lib.schedc_kernel_free(self.kernel)
        self.lib.schedc_close(self.context)


def describe(t):
    import torch
    types = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2, torch.float8_e4m3fn: 3, torch.float8_e5m2: 4, torch.int32: 5}
    fill = [0] * (MAX_RANK - t.dim())
    return Tensor(None, t.data_ptr(), types[t.dtype], t.dim(), (c.c_int64 * MAX_RANK)(*t.shape, *fill),
                  (c.c_int64 * MAX_RANK)(*t.stride(), *fill))


class Attention:
    """O, L = attention(Q, K, V): Q [B, M, H, D], K and V [B, N, G, D], any strides but the last."""

    def __init__(self, lib, schedule):
        self.lib, self.schedule, self.kernels = lib, schedule, {}

    def __call__(self, q, k, v, causal=False, scale=float("nan")):
        import torch
        key = q.dtype, q.shape[-1], causal
        if key not in self.kernels:
            names = {torch.float16: "f16", torch.bfloat16: "bf16"}
            self.kernels[key] = Kernel(self.lib, self.schedule, "fa3_fwd", T=names[q.dtype], D=q.shape[-1], causal=str(causal).lower())
        b, m, h, _ = q.shape
        o, l = torch.empty_like(q), torch.empty((b, h, m), dtype=torch.float32, device=q.device)
        self.kernels[key](torch.cuda.current_stream().cuda_stream, (q, k, v, o, l), (scale,))
        return o, l


def main():
    try:
        import torch
    except ImportError:
        sys.exit("this example needs PyTorch")
    if not torch.cuda.is_available():
        sys.exit("this example needs a GPU")
    torch.cuda.init()
    torch.zeros(1, device="cuda")  # makes the context current
    found = glob.glob(os.path.join(HERE, "..", "build", "**", "libschedc.so"), recursive=True)
    lib = open_library(sys.argv[1] if len(sys.argv) > 1 else found[0] if found else None)
    attention = Attention(lib, sys.argv[2] if len(sys.argv) > 2 else os.path.join(HERE, "..", "schedules", "fa3_fwd.sched"))
    make = lambda n, heads: torch.randn(2, n, heads, 128, dtype=torch.float16, device="cuda")
    for causal in False, True:
        q, k, v = make(1000, 16), make(1000, 4), make(1000, 4)
        o, _ = attention(q, k, v, causal)
        wide = [x.transpose(1, 2).float() for x in (q, k.repeat_interleave(4, 2), v.repeat_interleave(4, 2))]
        want = torch.nn.functional.scaled_dot_product_attention(*wide, is_causal=causal).transpose(1, 2)
        print(f"causal {causal}: largest difference from PyTorch in f32 {(o.float() - want).abs().max().item():.2e}")
    q, k, v = make(8192, 16), make(8192, 16), make(8192, 16)
    attention(q, k, v)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        attention(q, k, v)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(20):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    ms = begin.elapsed_time(end) / 20
    print(f"b 2, h 16, n 8192, d 128, captured in a graph: {ms:.3f} ms, {4 * 2 * 16 * 8192**2 * 128 / ms / 1e9:.0f} TFLOP/s")


if __name__ == "__main__":
    main()
