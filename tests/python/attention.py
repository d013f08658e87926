#!/usr/bin/env python3
"""schedc.flash_attn_func and the varlen form, against PyTorch in float64: results, gradients, layouts, types, what is refused,
as operators (opcheck) and under torch.compile. On a GPU also streams, graphs, and what a call costs beyond the C launch.

  attention.py [--on cuda|cpu] [--out FILE.json] [--only REGEX]      (schedc and torch are imported; without torch: skipped)

Without --on: on a Hopper GPU if PyTorch sees one, else on the CPU, where the interpreter runs the schedules.
"""
import argparse
import contextlib
import json
import os
import sys
import tempfile
import time

import kit
from checks import Checks, Skip, expect

try:
    import torch
except ImportError:
    torch = None

import schedc

BOUND, SHARE = 15.0, 1.25  # µs that a call may cost beyond the C launch; on a slow host, a share of what PyTorch alone takes
WHERE = "cpu"


def draw(*shape, dtype=None, seed=0, grad=False):
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape)))
    return made.to(WHERE, dtype or torch.float16).requires_grad_(grad)


def reference(q, k, v, scale=None, causal=False):
    """In float64, on the CPU; gradients go through it."""
    q, k, v = (x.double() for x in (q, k, v))
    group = q.shape[2] // k.shape[2]
    k, v = k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)
    s = torch.einsum("bmhd,bnhd->bhmn", q, k) * (scale or q.shape[3] ** -0.5)
    if causal:
        m, n = s.shape[2:]
        hidden = torch.arange(n, device=s.device)[None, :] > torch.arange(m, device=s.device)[:, None] + n - m
        s = s.masked_fill(hidden, float("-inf"))
    return torch.einsum("bhmn,bnhd->bmhd", s.softmax(3), v)


def near(what, out, want, steps=4):
    """Within a few steps of the type, for values of about one."""
    step = torch.finfo(out.dtype).eps
    worst = ((out.double() - want.double()).abs() / (1 + want.double().abs())).max().item()
    expect(out.shape == want.shape and worst <= steps * step, f"{what} is off by {worst:.2e}; allowed is {steps * step:.2e}")
    return {f"{what}_error": worst}


@contextlib.contextmanager
def prepared():
    """The kernels of calls that are prepared meanwhile: the first with tensors of their shapes."""
    from schedc import _attention
    find, found = _attention._find, []
    _attention._find = lambda *given: found.append(find(*given)) or found[-1]
    try:
        yield found
    finally:
        _attention._find = find


def both(q, k, v, deterministic=False, **how):
    """Results and gradients, with a gradient that lies differently in memory."""
    o = schedc.flash_attn_func(q, k, v, deterministic=deterministic,
                               **{{"scale": "softmax_scale"}.get(n, n): x for n, x in how.items()})
    want = reference(q, k, v, **how)
    found = near("O", o, want)
    if q.requires_grad:
        go = draw(*o.shape, seed=5, dtype=q.dtype).transpose(1, 2).contiguous().transpose(1, 2)
        ours, theirs = (torch.autograd.grad(x, (q, k, v), go.to(x.dtype)) for x in (o, want))
        for name, a, b in zip(("dQ", "dK", "dV"), ours, theirs):
            expect(a.dtype == q.dtype, f"{name} is of {a.dtype}")
            found.update(near(name, a, b, 16))
    return found


def results():
    found = {}
    for causal in (False, True):
        found[f"causal {causal}"] = both(draw(2, 70, 4, 64), draw(2, 90, 2, 64), draw(2, 90, 2, 64, seed=1), causal=causal)
    both(draw(1, 70, 2, 128, dtype=torch.bfloat16), *(draw(1, 90, 1, 128, dtype=torch.bfloat16, seed=s) for s in (1, 2)))
    both(draw(1, 30, 1, 256), draw(1, 20, 1, 256), draw(1, 20, 1, 256, seed=1), scale=0.02)
    return found


def gradients():
    found = {}
    for causal in (False, True):
        q, k, v = draw(1, 70, 2, 64, grad=True), draw(1, 90, 1, 64, grad=True), draw(1, 90, 1, 64, seed=1, grad=True)
        found[f"causal {causal}"] = both(q, k, v, causal=causal)
    both(draw(1, 70, 1, 128, dtype=torch.bfloat16, grad=True),
         *(draw(1, 70, 1, 128, dtype=torch.bfloat16, seed=s, grad=True) for s in (1, 2)), scale=0.05)
    q, k, v = draw(1, 70, 2, 64), draw(1, 90, 1, 64, grad=True), draw(1, 90, 1, 64, seed=1)
    schedc.flash_attn_func(q, k, v).sum().backward()  # a gradient whose strides are all 0
    want, = torch.autograd.grad(reference(q, k, v).sum(), k)
    near("dK", k.grad, want, 64)
    expect(not schedc.flash_attn_func(q, k.detach(), v).requires_grad, "no input wants a gradient, and the output has one")
    with torch.no_grad():
        expect(not schedc.flash_attn_func(q, k, v).requires_grad, "under no_grad the output has a gradient")
    return found


def deterministic():
    """Gradients by fa3_bwd_ordered are right, and have the same bits each time; fa3_bwd's need not have."""
    for causal, d in ((False, 64), (True, 128)):
        q, k, v = (draw(1, 300, heads, d, seed=s, grad=True) for s, heads in ((0, 4), (1, 2), (2, 2)))
        with prepared() as kernels:
            both(q, k, v, causal=causal, deterministic=True)
        used = [kernel for kernel in kernels if kernel.name == "fa3_bwd_ordered"]
        expect(used and all(kernel.is_deterministic for kernel in used), f"not by fa3_bwd_ordered, but by {kernels}")
        runs = []
        for _ in range(3):
            o = schedc.flash_attn_func(q, k, v, causal=causal, deterministic=True)
            runs.append(torch.autograd.grad(o, (q, k, v), torch.ones_like(o)))
        expect(all(torch.equal(a, b) for run in runs[1:] for a, b in zip(run, runs[0])), f"causal {causal}: other bits")
    o, l = torch.ops.schedc.attention.default(q.detach(), k.detach(), v.detach(), 0.125, True, True)
    torch.library.opcheck(torch.ops.schedc.attention_backward.default,
                          (o, q.detach(), k.detach(), v.detach(), o, l, 0.125, True, True),
                          test_utils=("test_schema", "test_faketensor", "test_autograd_registration"))


def layouts():
    packed = draw(2, 50, 3 * 2, 64)  # Q, K and V of a row beside each other
    both(packed[:, :, :2], packed[:, :, 2:4], packed[:, :, 4:])
    both(*(draw(2, 2, 50, 64, seed=s).transpose(1, 2) for s in range(3)))  # heads before rows
    both(draw(2, 50, 2, 64), *(draw(1, 50, 1, 64, seed=s).expand(2, -1, -1, -1) for s in (1, 2)))
    both(draw(1, 50, 64, 2).transpose(2, 3), draw(1, 50, 2, 64), draw(1, 50, 2, 64, seed=1))  # elements apart: copied


def by_shape():
    """With a store, each shape has the params of the record that is near it; without one, the schedule's own."""
    from schedc import _attention
    source = schedc.Source.read("fa3_stale.sched")
    shapes = ((1, 70, 2), (1, 1000, 2), (1, 80, 2))
    gpu = torch.cuda.get_device_name() if WHERE == "cuda" else "a GPU"

    def kernels():
        made = []
        for b, m, h in shapes:
            q, k, v = draw(b, m, h, 64), draw(b, m, h, 64), draw(b, m, h, 64, seed=1)
            with prepared() as one:
                near("O", schedc.flash_attn_func(q, k, v), reference(q, k, v))
            made += one
        return made

    def fresh():
        for known in (_attention._store, _attention._usual, _attention._problem):
            known.cache_clear()
        _attention._calls.clear()
        _attention._made.clear()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(kit.line(source, {"stages": "1"}, {"B": 1, "M": 70, "N": 70, "H": 2, "G": 2}, "fa3_stale", gpu,
                                {"T": "f16", "D": "64", "causal": "false"}))
        fresh()
        with kit.variable("SCHEDC_STORE", ""):
            usual = kernels()
        fresh()
        with kit.variable("SCHEDC_STORE", path):
            tuned = kernels()
        fresh()
    expect(len(set(usual)) == 1 and usual[0].record is None, "shapes have kernels of their own without a store")
    expect(tuned[0].params["stages"].value == 1 and tuned[0].record.line == 1, tuned[0])
    expect(tuned[2] is tuned[0] and tuned[1].record is None, "a shape far away has the record, or one nearby has not")
    expect(tuned[1].params == usual[0].params != tuned[0].params, "the params of a shape that none fits")


def varlen():
    """Three sequences, of which one has no rows; the first has several tiles of rows and of keys."""
    cq, ck = [0, 150, 150, 220], [0, 140, 170, 220]
    starts_q, starts_k = (torch.tensor(x, dtype=torch.int32, device=WHERE) for x in (cq, ck))
    q, k, v = draw(220, 2, 64, grad=True), draw(220, 1, 64, grad=True), draw(220, 1, 64, seed=1, grad=True)
    found = {}
    for causal in (False, True):
        o = schedc.flash_attn_varlen_func(q, k, v, starts_q, starts_k, 150, 140, causal=causal)
        go = draw(*o.shape, seed=5)
        ours = torch.autograd.grad(o, (q, k, v), go)
        for a, b, c, d in ((0, 150, 0, 140), (150, 220, 170, 220)):
            seen = a + max(0, b - a - d + c) if causal else a  # rows before it see no key
            own = q[None, seen:b], k[None, c:d], v[None, c:d]
            want = reference(*own, causal=causal)
            near(f"sequence from {a}", o[seen:b], want[0])
            theirs = torch.autograd.grad(want, own, go[None, seen:b].to(want.dtype))
            for name, x, y in zip(("dQ", "dK", "dV"), (ours[0][seen:b], ours[1][c:d], ours[2][c:d]), theirs):
                found.update(near(f"{name} from {a}", x, y[0], 16))
            expect(not ours[0][a:seen].any(), "rows that see no key have a gradient")
        expect(not ours[1][140:170].any() and not ours[2][140:170].any(), "keys without queries have a gradient")
    trusting = schedc.flash_attn_varlen_func(q, k, v, starts_q, starts_k, 150, 140, causal=True, trust_elements=True)
    expect(torch.equal(trusting, o), "without a look at the lists the output is another")
    longer = schedc.flash_attn_varlen_func(q, k, v, starts_q, starts_k, 2**40, 2**40, causal=True)
    expect(torch.equal(longer, o), "with lengths beyond all rows the output is another")
    for x, y in zip(torch.autograd.grad(trusting, (q, k, v), go), ours):
        near("gradients without a look at the lists", x, y, 16)
    expect(not schedc.flash_attn_varlen_func(q.detach(), k.detach(), v.detach(), starts_q, starts_k, 150, 140).requires_grad,
           "no input wants a gradient, and the output has one")
    return found


def promised():
    """A list that is not as its schedule says is refused, on a GPU by who asks."""
    kernel = schedc.load(os.path.join(kit.ROOT, "tests", "unusual", "from_offset_to_offset.sched"), on=WHERE)
    x = draw(320, 32).float()
    y = torch.empty_like(x)
    good, bad = (torch.tensor(list_, dtype=torch.int32, device=WHERE) for list_ in ([0, 2, 5], [0, 2, 6]))
    kernel.check_elements(x, good, Y=y)
    expect(torch.equal(kernel(x, good, Y=y), 2 * x), "the blocks are not all doubled")
    ask = kernel.check_elements if WHERE == "cuda" else kernel
    refused(schedc.ScheduleError, lambda: ask(x, bad, Y=y), "element [2] of 'begin' is 6")


def refused(kind, function, words):
    try:
        function()
    except kind as error:
        expect(words in str(error), f"nothing says '{words}': {error}")
    else:
        expect(False, f"no {kind.__name__} says '{words}'")


def refusals():
    q = draw(1, 70, 2, 64)
    starts = torch.tensor([0, 70], dtype=torch.int32, device=WHERE)
    for name, value in (("dropout_p", 0.1), ("window_size", (128, 0)), ("softcap", 30.0), ("deterministic", True),
                        ("alibi_slopes", draw(2)), ("return_attn_probs", True)):
        if name != "deterministic":
            refused(NotImplementedError, lambda: schedc.flash_attn_func(q, q, q, **{name: value}), name)
        refused(NotImplementedError,
                lambda: schedc.flash_attn_varlen_func(q[0], q[0], q[0], starts, starts, 70, 70, **{name: value}), name)
    schedc.flash_attn_func(q, q, q, dropout_p=0.0, window_size=(-1, -1), softcap=0, alibi_slopes=None, deterministic=False)
    refused(NotImplementedError, lambda: schedc.flash_attn_func(*(draw(1, 9, 1, 256),) * 3, deterministic=True), "q has 256")
    refused(NotImplementedError, lambda: schedc.flash_attn_func(q[..., :32], q[..., :32], q[..., :32]), "64, 128, 256")
    refused(NotImplementedError, lambda: schedc.flash_attn_func(q[0], q[0], q[0]), "4 dimensions")
    refused(TypeError, lambda: schedc.flash_attn_func(q.float(), q.float(), q.float()), "bfloat16")
    refused(TypeError, lambda: schedc.flash_attn_func(q, q, q.bfloat16()), "bfloat16")
    refused(schedc.ScheduleError, lambda: schedc.flash_attn_func(q, q, q[:, :9]), "'V'")
    refused(schedc.ScheduleError, lambda: schedc.flash_attn_func(q, draw(1, 70, 4, 64), draw(1, 70, 4, 64)), "H % G")
    refused(ValueError, lambda: schedc.flash_attn_func(q, q, q, 0.0), "softmax_scale: a number above 0 is wanted, not 0.0")
    for causal in (0.125, "no", None):  # FlashAttention 2 has dropout_p before the scale
        refused(TypeError, lambda: schedc.flash_attn_func(q, q, q, 0.1, causal), "the order is FlashAttention-3's")
    refused(TypeError, lambda: schedc.flash_attn_func(q, q, [1.0]), "v: a tensor of PyTorch is wanted, not list")
    refused(TypeError, lambda: schedc.flash_attn_func(q.cpu().numpy(), q, q), "q: a tensor of PyTorch is wanted, not ndarray")
    refused(TypeError, lambda: schedc.flash_attn_func(q, q.to("meta"), q), f"not on {q.device}, meta, {q.device}")

    def varlen(starts_q, starts_k, longest=70):
        return schedc.flash_attn_varlen_func(q[0], q[0], q[0], starts_q, starts_k, longest, 70)
    refused(TypeError, lambda: varlen(starts, starts.long()), "cu_seqlens_k: a tensor of torch.int32 with one dimension is wanted")
    refused(TypeError, lambda: varlen([0, 70], starts), "cu_seqlens_q: a tensor of torch.int32 with one dimension is wanted, not list")
    refused(ValueError, lambda: varlen(starts, starts[:1]), "have the same length, not 2 and 1")
    refused(TypeError, lambda: varlen(starts, starts, None), "max_seqlen_q and max_seqlen_k")
    refused(ValueError, lambda: varlen(starts, starts, -1), "the rows of the longest sequences are wanted, not -1 and 70")


def without_memory():
    """Tensors of the device meta have shapes alone, and so has what is made of them."""
    q, starts = draw(1, 70, 2, 64).to("meta").requires_grad_(), torch.empty(2, dtype=torch.int32, device="meta")
    o = schedc.flash_attn_func(q, q, q)
    o.sum().backward()
    expect(o.is_meta and o.shape == q.shape and q.grad.is_meta and q.grad.shape == q.shape, o)
    expect(schedc.flash_attn_varlen_func(q[0], q[0], q[0], starts, starts, 70, 70).shape == q[0].shape, "varlen")


def operators():
    """What PyTorch asks of an operator: its schema, its stand-in without data, its gradients under tracing."""
    q, k, v = draw(1, 70, 2, 64, grad=True), draw(1, 90, 1, 64, grad=True), draw(1, 90, 1, 64, seed=1, grad=True)
    torch.library.opcheck(torch.ops.schedc.attention.default, (q, k, v, 0.125, True))
    o, l = torch.ops.schedc.attention.default(q.detach(), k.detach(), v.detach(), 0.125, True)
    tests = ("test_schema", "test_faketensor")  # sums in no fixed order: two runs have not the same bits
    torch.library.opcheck(torch.ops.schedc.attention_backward.default,
                          (o, q.detach(), k.detach(), v.detach(), o, l, 0.125, True), test_utils=tests)
    starts = torch.tensor([0, 70], dtype=torch.int32, device=WHERE)
    torch.library.opcheck(torch.ops.schedc.attention_varlen.default,
                          (q[0], k[0, :70], v[0, :70], starts, starts, 70, 70, 0.125, True))
    o, l = torch.ops.schedc.attention_varlen.default(q[0].detach(), k[0, :70].detach(), v[0, :70].detach(), starts, starts, 70,
                                                     70, 0.125, True)
    torch.library.opcheck(torch.ops.schedc.attention_varlen_backward.default,
                          (o, q[0].detach(), k[0, :70].detach(), v[0, :70].detach(), o, l, starts, starts, 70, 70, 0.125, True),
                          test_utils=tests)


def intercepted():
    """Who intercepts operators sees them, forwards and backwards; the result is the one without."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Seen(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.names.append(function.name())
            return function(*args, **(kwargs or {}))
    q, k, v = draw(1, 70, 2, 64, grad=True), draw(1, 90, 1, 64, grad=True), draw(1, 90, 1, 64, seed=1, grad=True)
    starts = [torch.tensor([0, n], dtype=torch.int32, device=WHERE) for n in (70, 90)]
    for name, function in (("attention", lambda: schedc.flash_attn_func(q, k, v, 0.1, True)),
                           ("attention_varlen", lambda: schedc.flash_attn_varlen_func(q[0], k[0], v[0], *starts, 70, 90, 0.1, 1))):
        want = torch.autograd.grad(function().sum(), (q, k, v))
        with Seen() as seen:
            got = torch.autograd.grad(function().sum(), (q, k, v))
        for operator in (f"schedc::{name}", f"schedc::{name}_backward"):
            expect(seen.names.count(operator) == 1, f"{operator} is not seen among {seen.names}")
        for a, b in zip(got, want):
            near("a gradient", a, b, 64)


def compiled():
    """In one graph, forwards and backwards, also with other lengths."""
    backend = "inductor" if WHERE == "cuda" else "aot_eager"

    def layer(q, k, v, causal):
        return schedc.flash_attn_func(q * 2, k, v, causal=causal).relu()
    fast = torch.compile(layer, backend=backend, fullgraph=True)
    for n in (70, 75, 80):
        q, k, v = draw(1, n, 2, 64, grad=True), draw(1, 90, 1, 64, grad=True), draw(1, 90, 1, 64, seed=1, grad=True)
        o, want = fast(q, k, v, True), layer(q, k, v, True)
        near("O", o, want)
        for a, b in zip(torch.autograd.grad(o.sum(), (q, k, v)), torch.autograd.grad(want.sum(), (q, k, v))):
            near("a gradient", a, b, 64)


def called():
    """Kernels as functions of tensors: outputs made and given, one that wants a gradient, and a workspace."""
    kernel = schedc.load("fa3_stale.sched", D=64, on=WHERE)
    q, k, v = draw(1, 70, 2, 64, grad=True), draw(1, 90, 1, 64), draw(1, 90, 1, 64, seed=1)
    out, given = kernel(q, k, v, scale=0.2), torch.zeros(1, 70, 2, 64, dtype=torch.float16, device=WHERE)
    near("O", out.O, reference(q.detach(), k, v, 0.2))
    expect(kernel(q, k, v, O=given, scale=0.2).O is given and torch.equal(given, out.O), "the output that is given")
    go = draw(1, 70, 2, 64, seed=9)
    grads = schedc.load("fa3_bwd.sched", D=64, on=WHERE)(O=out.O, dO=go, L=out.L, Q=q, K=k, V=v, scale=0.2)
    want, = torch.autograd.grad(reference(q, k, v, 0.2), q, go.double())
    near("dQ", grads.dQ, want, 16)
    if WHERE == "cuda":
        refused(ValueError, lambda: kernel(q, k.cpu(), v), "K: the tensors are on different devices")


def searched():
    """schedc.tune on tensors of PyTorch, which stay as they are, and where there is a GPU on the current stream; on the CPU by
    the cost model."""
    q, k, v = draw(1, 200, 2, 64), draw(1, 300, 2, 64), draw(1, 300, 2, 64, seed=1)
    before = q.clone()
    found = schedc.tune("fa3_stale.sched", arrays={"Q": q, "K": k, "V": v, "scale": 0.2}, on=WHERE, D=64, BN=128, stale=True,
                        strategy="model", top=2, turns=1, brief_ms=1, final_ms=5, inputs=("normal", "outliers"))
    expect(found.best is not None and found.best.verified and torch.equal(q, before), found)
    near("O", found.kernel()(q, k, v, scale=0.2).O, reference(q, k, v, 0.2))


def only_on_a_gpu():
    if WHERE != "cuda":
        raise Skip("no GPU")


def streams():
    only_on_a_gpu()
    q, k, v = draw(2, 4096, 4, 128), draw(2, 4096, 4, 128, seed=1), draw(2, 4096, 4, 128, seed=2)
    want = schedc.flash_attn_func(q, k, v)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)
        late = q.clone().fill_(0)
        late.copy_(q)
        o = schedc.flash_attn_func(late, k, v)
        expect(not side.query(), "the call has waited for its stream")
    torch.cuda.current_stream().wait_stream(side)
    expect(torch.equal(o, want), "on another stream the result is another")


def captured():
    """Forwards and backwards in a CUDA graph, replayed with other inputs."""
    only_on_a_gpu()
    q, k, v = (draw(1, 512, 4, 128, seed=s, grad=True) for s in range(3))
    step = lambda: torch.autograd.grad(schedc.flash_attn_func(q, k, v, causal=True), (q, k, v), q.detach())
    step()  # built and loaded outside of the graph
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = step()
    with torch.no_grad():
        for x in (q, k, v):
            x.normal_()
    graph.replay()
    for name, a, b in zip(("dQ", "dK", "dV"), got, step()):
        near(name, a, b, 16)


def microseconds(function, turns=20, calls=500):
    """The least of the means of so many turns, of calls that do not wait for the GPU; what is enqueued is waited for between
    them. (A core that was idle is slow at first.)"""
    best = []
    for _ in range(turns):
        torch.cuda.synchronize() if WHERE == "cuda" else None
        begun = time.perf_counter()
        for _ in range(calls):
            function()
        best.append((time.perf_counter() - begun) / calls * 1e6)
    return min(best)


class Keeps(torch.autograd.Function if torch else object):
    """PyTorch's part of a call with a gradient: two outputs are made, and five tensors are kept."""

    @staticmethod
    def forward(kept, q, k, v):
        o, l = torch.empty_like(q), q.new_empty((q.shape[0], q.shape[2], q.shape[1]))
        kept.save_for_backward(q, k, v, o, l)
        return o, l

    @staticmethod
    def backward(kept, *_):
        return kept.saved_tensors[:3]


def costs():
    """What a call costs the host beyond schedc_launch with everything given."""
    only_on_a_gpu()
    q, k, v = (draw(1, 64, 1, 64, seed=s) for s in range(3))
    grad = q.clone().requires_grad_()
    kernel = schedc.load("fa3_stale.sched", D=64)
    o, l = kernel(q, k, v)
    memory = tuple(schedc.Memory(x.data_ptr(), "f16" if x.dtype == torch.float16 else "f32", tuple(x.shape), device=0)
                   for x in (q, k, v, o, l))
    found = {"launch_at_addresses_us": microseconds(lambda: kernel.launch(memory, stream=0)),
             "launch_us": microseconds(lambda: kernel.launch((q, k, v, o, l))),
             "flash_attn_func_us": microseconds(lambda: schedc.flash_attn_func(q, k, v)),
             "flash_attn_func_with_gradient_us": microseconds(lambda: schedc.flash_attn_func(grad, k, v)),
             "kernel_outputs_given_us": microseconds(lambda: kernel(q, k, v, O=o, L=l)),
             "kernel_outputs_made_us": microseconds(lambda: kernel(q, k, v)),
             "pytorch_function_us": microseconds(lambda: Keeps.apply(grad, k, v))}
    print(" ".join(f"{n} {x:.1f}" for n, x in found.items()))
    return found


def cost():
    """In a process that has done little else."""
    found = costs()
    bound = max(BOUND, SHARE * found["pytorch_function_us"])
    for name, us in found.items():
        expect(us - found["launch_us"] < bound, f"{name}: {us:.1f} µs, a launch {found['launch_us']:.1f}, and {bound:.1f} is allowed")
    return found


def cost_later():
    """Once torch.compile was used, which makes all functions of Python slower: told, and held by no bound."""
    return costs()


def main():
    global WHERE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", choices=("cuda", "cpu"))
    parser.add_argument("--only")
    parser.add_argument("--out", metavar="FILE.json")
    args = parser.parse_args()
    if torch is None:
        print("no PyTorch: 0 passed, 0 failed, 1 skipped")
        return 0
    WHERE = args.on or ("cuda" if torch.cuda.is_available() else "cpu")
    checks = Checks(args.only)
    for function in (called, cost, results, gradients, deterministic, layouts, by_shape, varlen, promised, refusals, without_memory, operators,
                     intercepted, compiled, searched, streams, captured, cost_later):
        checks.run(function.__name__, function)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            json.dump({"on": WHERE, "torch": torch.__version__, "checks": checks.results}, file, indent=1)
    return checks.tell()


if __name__ == "__main__":
    sys.exit(main())
