"""Checks of tests/gpu/launch.py: layouts of tensors, lengths, tensors of more than 2^31 elements, and what is refused."""
import math

import torch

import kit
import layouts
from kit import Failed, compare_attention, describe, distance, expect, expect_written, launch, make, same_sums
from refused import refuse_all

ATTENTION = {  # kernels that all layouts and lengths are tried with
    "fa3_fwd": ("fa3_fwd", {}), "fa3_fwd causal": ("fa3_fwd", {"causal": True}),
    "fa3_stale": ("fa3_stale", {}), "fa3_stale causal": ("fa3_stale", {"causal": True}),
}
MORE = {"d64": {"D": 64}, "d256": {"D": 256, "causal": True}, "bf16": {"T": "bf16"}}  # and these with some
SOME = ("an order each", "slices", "one K and V", "padded, permuted, one K")
SIZES = {"B": 2, "M": 200, "N": 333, "H": 4, "G": 2}
LENGTHS = [(1, 1), (1, 333), (3, 2), (63, 65), (65, 64), (113, 129), (128, 127), (129, 1025), (250, 100), (799, 203)]
EMPTY = [{"N": 0}, {"M": 0}, {"B": 0}, {"M": 1, "N": 0}, {"M": 0, "N": 0}]
GEMM_LENGTHS = [(1, 8, 8), (65, 136, 200), (64, 128, 8), (129, 264, 64), (0, 8, 8), (3, 8, 0)]
FAR = 1 << 31  # elements: more than 32-bit arithmetic reaches


# ---- layouts and lengths

def attention(kernel, dims, layout, causal):
    made = make(kernel, dims, layout)
    q, k, v, o, l = (view for _, view in made)
    launch(kernel, (q, k, v, o, l))
    expect_written("O", made[3][0], o)
    expect_written("L", made[4][0], l)
    return compare_attention(q, k, v, o, l, causal)


def attention_lengths(kernel, causal, lengths):
    """One after the other, with more shapes than the library remembers; each once more, in which nothing may differ."""
    figures = {}
    for turn in range(2):
        for dims in lengths:
            dims = {**SIZES, **dims}
            try:
                figures = attention(kernel, dims, {}, causal) or figures
            except (kit.Wrong, Failed) as error:
                raise kit.Wrong(f"{dims}, time {turn + 1}: {error}") from error
    return figures


def gemm(kernel, dims, layout):
    made = make(kernel, dims, layout)
    a, b, c = (view for _, view in made)
    launch(kernel, (a, b, c))
    expect_written("C", made[2][0], c)
    return distance("C", c, *kit.gemm(a, b))


def gemm_lengths(kernel):
    for m, n, k in GEMM_LENGTHS:
        gemm(kernel, {"M": m, "N": n, "K": k}, {})


def varlen(kernels):
    """Sequences end to end, some empty on either side, in padded and permuted tensors."""
    kernel = kernels.get("fa_varlen", causal=True)
    queries, keys, heads = [0, 0, 130, 130, 140, 200], [0, 50, 50, 180, 180, 333], 4
    sizes = {"B": 5, "TQ": 200, "TK": 333, "H": heads, "G": 2}
    for layout in ({}, {"Q": {"order": (1, 0, 2), "pad": {0: 64}}, "K": {"pad": {2: 8}}, "V": {"order": (1, 0, 2)},
                        "O": {"pad": {2: 16, 1: 8}}, "L": {"pad": {1: 3}}}):
        made = make(kernel, sizes, layout)
        q, k, v, cq, ck, o, l = (view for _, view in made)
        cq.copy_(torch.tensor(queries))
        ck.copy_(torch.tensor(keys))
        launch(kernel, (q, k, v, cq, ck, o, l), [130.0, math.nan])
        expect_written("O", made[5][0], o)
        expect_written("L", made[6][0], l)
        for i in range(5):
            rows, seen = slice(queries[i], queries[i + 1]), slice(keys[i], keys[i + 1])
            ref, sums, rounded = kit.attention(q[None, rows], k[None, seen], v[None, seen], True)
            distance("O", o[None, rows], ref, rounded)
            same_sums("L", l[None, :, rows], sums)


# ---- 64-bit addresses

def far(kernel, shape, strides):
    """Q, K, V and O in one storage of NaN, each with elements more than 2^31 apart."""
    storage = torch.full((FAR + (1 << 28),), math.nan, dtype=torch.float16, device=kit.DEVICE)
    q, k, v, o = (storage.as_strided(shape, strides, 128 * i) for i in range(4))  # in the gaps that 1024 leaves
    for x in (q, k, v):
        x.copy_(torch.randn(shape, device=kit.DEVICE))
    l = torch.full((shape[0], shape[2], shape[1]), math.nan, device=kit.DEVICE)
    launch(kernel, (q, k, v, o, l))
    written = sum(int((~torch.isnan(part)).sum()) for part in storage.split(1 << 28))
    expect(written == 4 * q.numel(), f"{written} elements are written, of {4 * q.numel()}")
    return compare_attention(q, k, v, o, l, False)


FAR_STEPS = {  # shape and strides
    "batches 2^31 apart": ((2, 70, 2, 128), (FAR, 2048, 1024, 1)),
    "heads 2^30 apart": ((1, 70, 3, 128), (1024, 1024, 1 << 30, 1)),
    "rows 2^25 apart": ((1, 70, 2, 128), (1024, 1 << 25, 1024, 1)),
}


def dense_queries(kernel):
    """Q and O of more than 2^31 elements, without gaps."""
    m, h = FAR // (64 * 128) + 200, 64
    q = torch.randn((1, m, h, 128), dtype=torch.float16, device=kit.DEVICE)
    k, v = (torch.randn((1, 100, h, 128), dtype=torch.float16, device=kit.DEVICE) for _ in range(2))
    o, l = torch.full_like(q, math.nan), torch.full((1, h, m), math.nan, device=kit.DEVICE)
    launch(kernel, (q, k, v, o, l))
    expect(not any(bool(torch.isnan(part).any()) for part in o.split(1 << 14, 1)), "elements of O are not written")
    expect(not bool(torch.isnan(l).any()), "elements of L are not written")
    rows = torch.cat([torch.arange(64), torch.randint(m, (100,)), torch.arange(m - 300, m)]).to(kit.DEVICE)
    return compare_attention(q[:, rows], k, v, o[:, rows], l[:, :, rows], False)


def dense_keys(kernel):
    """K and V of more than 2^31 elements."""
    b, n, h = 128, 2049, 64
    q = torch.randn((b, 64, h, 128), dtype=torch.float16, device=kit.DEVICE)
    k, v = (torch.randn((b, n, h, 128), dtype=torch.float16, device=kit.DEVICE) for _ in range(2))
    o, l = torch.full_like(q, math.nan), torch.full((b, h, 64), math.nan, device=kit.DEVICE)
    launch(kernel, (q, k, v, o, l))
    expect(not bool(torch.isnan(o).any()) and not bool(torch.isnan(l).any()), "some elements are not written")
    figures = {}
    for batch in (0, 63, b - 1):
        at = slice(batch, batch + 1)
        figures = compare_attention(q[at], k[at], v[at], o[at], l[at], False)
    return figures


def dense_gemm(kernel):
    """A and C of more than 2^31 elements: one is copied in, the other stored by threads."""
    m = FAR // 64 + 100
    a = torch.randn((m, 64), dtype=torch.float16, device=kit.DEVICE)
    b = torch.randn((64, 64), dtype=torch.float16, device=kit.DEVICE)
    c = torch.full((m, 64), math.nan, dtype=torch.float16, device=kit.DEVICE)
    launch(kernel, (a, b, c))
    expect(not any(bool(torch.isnan(part).any()) for part in c.split(1 << 22)), "elements of C are not written")
    rows = torch.cat([torch.arange(64), torch.randint(m, (1000,)), torch.arange(m - 300, m)]).to(kit.DEVICE)
    return distance("C", c[rows], *kit.gemm(a[rows], b))


def dense_copy(kernel):
    """Of more than 2^31 elements, in and out by the copy engine."""
    m = FAR // 64 + 100
    x = torch.randn((m, 64), dtype=torch.float16, device=kit.DEVICE)
    y = torch.full_like(x, math.nan)
    launch(kernel, (x, y))
    expect(all(torch.equal(a, b) for a, b in zip(x.split(1 << 22), y.split(1 << 22))), "Y differs from X")


# ---- what is refused

def refuse(kernel):
    """Each by a message that names the tensor, whether the shapes are known or new; nothing is launched."""
    made = make(kernel, SIZES, {})
    views = [view for _, view in made]
    for known in (False, True):
        refuse_all(kernel, lambda: describe(kernel, views), torch.cuda.current_stream().cuda_stream)
        torch.cuda.synchronize()
        if not known:
            expect(bool(torch.isnan(made[3][0]).all()), "something was launched")
        made[3][0].fill_(math.nan)
        launch(kernel, views)
        compare_attention(*views, False)


def refuse_heads(kernel):
    views = [view for _, view in make(kernel, {**SIZES, "H": 3, "G": 2}, {})]
    try:
        launch(kernel, views)
    except Failed as error:
        expect("H = 3" in str(error) and "G = 2" in str(error), str(error))
        return
    raise kit.Wrong("3 heads that share 2 are not refused")


# ---- all of them

def run(checks, kernels):
    for name, (schedule, params) in ATTENTION.items():
        causal = params.get("causal", False)
        for layout, tensors in layouts.ATTENTION.items():
            checks.run(f"{name}: {layout}", lambda s=schedule, p=params, t=tensors, c=causal:
                       attention(kernels.get(s, **p), SIZES, t, c))
        for what, lengths in (("lengths", [{"M": m, "N": n} for m, n in LENGTHS]), ("nothing", EMPTY)):
            checks.run(f"{name}: {what}", lambda s=schedule, p=params, c=causal, e=lengths:
                       attention_lengths(kernels.get(s, **p), c, e))
    for schedule in ("fa3_fwd", "fa3_stale"):
        for name, params in MORE.items():
            for layout in SOME:
                checks.run(f"{schedule} {name}: {layout}", lambda s=schedule, p=params, t=layout:
                           attention(kernels.get(s, **p), SIZES, layouts.ATTENTION[t], p.get("causal", False)))
        for name, steps in FAR_STEPS.items():
            checks.run(f"{schedule}: {name}", lambda s=schedule, t=steps: far(kernels.get(s), *t))
        checks.run(f"{schedule}: 2^31 elements of Q", lambda s=schedule: dense_queries(kernels.get(s)))
        checks.run(f"{schedule}: 2^31 elements of K", lambda s=schedule: dense_keys(kernels.get(s)))
        checks.run(f"{schedule}: refused", lambda s=schedule: refuse(kernels.fresh(s)))
        checks.run(f"{schedule}: heads refused", lambda s=schedule: refuse_heads(kernels.get(s)))
    for name, layout in layouts.GEMM.items():
        checks.run(f"gemm: {name}", lambda t=layout: gemm(kernels.get("gemm"), {"M": 200, "N": 264, "K": 136}, t))
    checks.run("gemm: lengths", lambda: gemm_lengths(kernels.get("gemm")))
    checks.run("gemm: 2^31 elements", lambda: dense_gemm(kernels.get("gemm")))
    checks.run("copy: 2^31 elements", lambda: dense_copy(kernels.get("copy")))
    checks.run("fa_varlen: empty sequences", lambda: varlen(kernels))
