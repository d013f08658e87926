#!/usr/bin/env python3
"""Attention on PyTorch tensors by the Python package (pip install ., or PYTHONPATH=build/release/python).

    python3 examples/torch_attention.py

`schedc.flash_attn_func` for most; and the kernel itself, which also returns the log-sum-exp and takes outputs. A call checks
its tensors, and enqueues one launch on PyTorch's current stream. Nothing is copied, whatever the strides, nothing waits, and
calls can be captured in a CUDA graph. Every result is compared with PyTorch's own attention: exit code 1 if one is off. Needs
a Hopper GPU, PyTorch, and NVRTC (PyTorch brings it).
"""
import sys

try:
    import torch
except ImportError:
    sys.exit("this example needs PyTorch")

import schedc


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


def results(make):
    """Masks, types, strides, streams: whether all are right."""
    good = True
    for causal in False, True:
        q, k, v = make(1000, 16), make(1000, 4), make(1000, 4)
        good &= compare(f"causal {causal}", schedc.flash_attn_func(q, k, v, causal=causal), q, k, v, causal)
    q, k, v = (make(777, 8).bfloat16() for _ in range(3))
    good &= compare("bf16", schedc.flash_attn_func(q, k, v), q, k, v)
    packed = make(500, 3 * 8)  # Q, K and V of a row beside each other
    q, k, v = packed[:, :, :8], packed[:, :, 8:16], packed[:, :, 16:]
    good &= compare("slices of a packed tensor", schedc.flash_attn_func(q, k, v), q, k, v)
    q, k, v = (make(8, 500).transpose(1, 2) for _ in range(3))  # in memory heads come before rows
    good &= compare("heads before rows", schedc.flash_attn_func(q, k, v), q, k, v)
    q, k, v = make(500, 8), *(make(500, 8)[:1].expand(2, -1, -1, -1) for _ in range(2))
    good &= compare("K and V of one batch for all", schedc.flash_attn_func(q, k, v), q, k, v)
    attention, o = schedc.load("fa3_stale.sched", D=128), torch.empty_like(q)
    attention(q, k, v, O=o)
    good &= compare("into an output that is given", o, q, k, v)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        o = schedc.flash_attn_func(q, k, v)
    torch.cuda.current_stream().wait_stream(stream)
    return good & compare("on another stream", o, q, k, v)


def captured(make):
    """In a CUDA graph, replayed with other inputs; and how long it takes beside PyTorch's."""
    q, k, v = make(8192, 16), make(8192, 16), make(8192, 16)
    schedc.flash_attn_func(q, k, v)  # built outside of the graph
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o = schedc.flash_attn_func(q, k, v)
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
    torch.manual_seed(0)
    make = lambda n, heads: torch.randn(2, n, heads, 128, dtype=torch.float16, device="cuda")
    good = results(make) & captured(make)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
