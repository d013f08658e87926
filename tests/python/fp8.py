#!/usr/bin/env python3
"""Attention in 8 bits from PyTorch: schedc.flash_attn_func on tensors of 8 bits, and flash_attn_fp8_func, which quantizes tensors
of 16, against PyTorch in float64; what is refused; as operators and under torch.compile.

  fp8.py [--on cuda|cpu] [--only REGEX]      (schedc and torch are imported; without torch: skipped)

Without --on: on a Hopper GPU if PyTorch sees one, else on the CPU, where the interpreter runs the schedules.
"""
import argparse
import sys

import kit  # noqa: F401  (it says where the checks' modules are)
from attention import draw, reference, refused
from checks import Checks, expect

try:
    import torch
except ImportError:
    torch = None

import attention
import schedc


def eight(*shape, seed=0, dtype=None):
    return draw(*shape, seed=seed).to(dtype or torch.float8_e4m3fn)


def close(what, out, want, most):
    """In proportion to the root of the mean square. P has 3 bits behind its point, and is summed over many keys."""
    error = ((out.double() - want.double()).pow(2).mean() / want.double().pow(2).mean()).sqrt().item()
    expect(out.shape == want.shape and error <= most, f"{what} is off by {error:.3f} of its size; allowed is {most}")
    return error


def by_heads(x, scales):
    return x.double() * scales.double().repeat_interleave(x.shape[2] // scales.shape[1], 1)[:, None, :, None]


def scales():
    """Of each head, of the groups of Q's heads as FlashAttention-3 has them, and none."""
    q, k, v = eight(2, 150, 4, 64), eight(2, 200, 2, 64), eight(2, 200, 2, 64, seed=1)
    fq, fk, fv = (torch.rand(2, n, generator=torch.Generator().manual_seed(n)).to(q.device) + 0.5 for n in (4, 3, 2))
    fk = fk[:, :2]  # its rows do not follow each other without a gap
    found = {}
    for causal in (False, True):
        out = schedc.flash_attn_func(q, k, v, causal=causal, q_descale=fq, k_descale=fk, v_descale=fv)
        want = reference(by_heads(q, fq), by_heads(k, fk), by_heads(v, fv), causal=causal)
        expect(out.dtype == torch.bfloat16, out.dtype)
        found[f"causal {causal}"] = close("O", out, want, 0.04)
    close("O", schedc.flash_attn_func(q, k, v, 0.3, q_descale=fq[:, 2:]),
          reference(by_heads(q, fq[:, 2:]), k.double(), v.double(), 0.3), 0.04)
    close("O", schedc.flash_attn_func(q, k, v), reference(q.double(), k.double(), v.double()), 0.04)
    q, k, v = (x.to(torch.float16).to(torch.float8_e5m2) for x in (q, k, v))
    close("O", schedc.flash_attn_func(q, k, v), reference(q.double(), k.double(), v.double()), 0.08)
    return found


def turned(x, cos, sin, at):
    a, b = x.double().chunk(2, -1)
    cos, sin = (t.double()[at:at + x.shape[1]][None, :, None] for t in (cos, sin))
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def quantized():
    """With and without blocks, incoherent processing and a rotary embedding, whose last query is at the last key."""
    found = {}
    for d, dtype in ((64, torch.bfloat16), (128, torch.float16)):
        q, k, v = (draw(1, n, h, d, dtype=dtype, seed=s) for n, h, s in ((150, 4, 0), (200, 2, 1), (200, 2, 2)))
        signs = torch.randint(0, 2, (d,), generator=torch.Generator().manual_seed(1)).to(q.device).float() * 2 - 1
        angle = torch.arange(200, device=q.device)[:, None] * 10000.0 ** (-torch.arange(d // 2, device=q.device) / (d // 2))
        rotary = {"rotary_cos": angle.cos().to(dtype), "rotary_sin": angle.sin().to(dtype)}
        for block in (0, 128):
            for given in ({}, {"signs": signs}, rotary, {"signs": signs, **rotary}):
                out = schedc.flash_attn_fp8_func(q, k, v, causal=block == 0, block=block, **given)
                tables = rotary.values()
                first, second = (turned(q, *tables, 50), turned(k, *tables, 0)) if "rotary_cos" in given else (q, k)
                expect(out.dtype == dtype and out.is_contiguous(), out)
                found[f"{d} {block} {', '.join(given)}"] = close("O", out, reference(first, second, v, causal=block == 0), 0.08)
        expect(not torch.equal(schedc.flash_attn_fp8_func(q, k, v, block=0), schedc.flash_attn_fp8_func(q, k, v)),
               "a scale for a head and for each 128 rows have the same result")
        steep = torch.where(torch.rand(q.shape, generator=torch.Generator().manual_seed(7)).to(q.device) < 0.002, 60 * q, q)
        plain, spread = ((schedc.flash_attn_fp8_func(steep, k, v, 0.02, **given).double() - reference(steep, k, v, 0.02)).pow(2).mean()
                         for given in ({}, {"signs": signs}))
        expect(spread < plain / 2, f"with outliers the square of the error is {plain} without signs, and {spread} with them")
        lost = schedc.flash_attn_fp8_func(q * 1, k, v) - schedc.flash_attn_fp8_func(q.transpose(1, 2).contiguous().transpose(1, 2), k, v)
        expect(not lost.any(), "a Q with heads before rows has another result")
    return found


def refusals():
    q, k = eight(1, 70, 4, 64), draw(1, 70, 2, 64)
    one = torch.ones(1, 4, device=q.device)
    refused(TypeError, lambda: schedc.flash_attn_func(q, q, q, q_descale=one[0]), "q_descale: float32 of shape (1, 4) is wanted")
    refused(TypeError, lambda: schedc.flash_attn_func(q, q, q, v_descale=one.half()), "v_descale: float32 of shape (1, 4) is wanted")
    refused(TypeError, lambda: schedc.flash_attn_func(q, q, q, k_descale=2.0), "k_descale: a tensor of PyTorch is wanted, not float")
    refused(TypeError, lambda: schedc.flash_attn_func(q, q, q, k_descale=one[:, :2]), "k_descale: float32 of shape (1, 4) is wanted")
    refused(TypeError, lambda: schedc.flash_attn_func(q, q[:, :, :2], q[:, :, :2], q_descale=one[:, :1]), "of shape (1, 4) or (1, 2)")
    refused(TypeError, lambda: schedc.flash_attn_func(q, q, q, k_descale=one.to("meta")), "k_descale is on meta, and q on ")
    refused(NotImplementedError, lambda: schedc.flash_attn_func(q, q, q, k_descale=one.clone().requires_grad_()), "no gradients of")
    refused(ValueError, lambda: schedc.flash_attn_func(q, q, q, float("nan")), "a number above 0 is wanted, not nan")
    refused(ValueError, lambda: schedc.flash_attn_func(k, k, k, float("nan")), "a number above 0 is wanted, not nan")
    refused(TypeError, lambda: schedc.flash_attn_func(q, q, q.to(torch.float16)), "all float8_e4m3fn or all float8_e5m2")
    refused(TypeError, lambda: schedc.flash_attn_func(k, k, k, k_descale=one), "are for tensors of 8 bits")
    refused(TypeError, lambda: schedc.flash_attn_fp8_func(q, q, q), "all float16 or all bfloat16")
    refused(NotImplementedError, lambda: schedc.flash_attn_fp8_func(k.clone().requires_grad_(), k, k), "no gradients of attention in 8")
    refused(ValueError, lambda: schedc.flash_attn_fp8_func(k, k, k, block=64), "block is one of 0, 128, 256, 384, 640, not 64")
    refused(TypeError, lambda: schedc.flash_attn_fp8_func(k, k, k, rotary_cos=k[0, :, 0, :32]), "given together")
    refused(TypeError, lambda: schedc.flash_attn_fp8_func(k, k, k, signs=[1.0] * 64), "signs: a tensor of PyTorch is wanted, not list")
    refused(TypeError, lambda: schedc.flash_attn_fp8_func(k, k, k, signs=one[0].to("meta")), "signs is on meta, and q on ")
    refused(schedc.ScheduleError, lambda: schedc.flash_attn_fp8_func(k, k, k, signs=one[0]), "'signs'")
    table = k[0, :9, 0, :32]
    refused(schedc.ScheduleError, lambda: schedc.flash_attn_fp8_func(k, k, k, rotary_cos=table, rotary_sin=table), "'cos'")


def operators():
    """What PyTorch asks of an operator: its schema, and its stand-in without data."""
    q, k, one = eight(1, 70, 2, 64), draw(1, 70, 2, 64), torch.ones(1, 2, 1, device=attention.WHERE)
    torch.library.opcheck(torch.ops.schedc.attention_fp8.default, (q, q, q, one, one, one, 0.125, True),
                          test_utils=("test_faketensor",))  # PyTorch compares no tensors of 8 bits, as "test_schema" wants
    torch.library.opcheck(torch.ops.schedc.attention_fp8_from16.default, (k, k, k, None, None, None, 0.125, True, 128),
                          test_utils=("test_schema", "test_faketensor"))
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode(allow_non_fake_inputs=True):
        schedc.flash_attn_func(q, q, q)  # what is kept for later calls is no tensor of the mode
    expect(torch.isfinite(schedc.flash_attn_func(q, q, q)).all(), "the call after one in FakeTensorMode")
    meta = q.to("meta")
    out = schedc.flash_attn_func(meta, meta, meta)
    expect(out.is_meta and out.shape == q.shape and out.dtype == torch.bfloat16, out)


def compiled():
    def layer(q, k, v):
        return schedc.flash_attn_fp8_func(q * 2, k, v, causal=True).relu()
    fast = torch.compile(layer, backend="inductor" if attention.WHERE == "cuda" else "aot_eager", fullgraph=True)
    def by_heads_of(q, k, v, scale):
        return schedc.flash_attn_func(q, k, v, causal=True, k_descale=scale).relu()
    eight_fast = torch.compile(by_heads_of, backend="aot_eager", fullgraph=True)
    scale = torch.full((1, 1), 1.5, device=attention.WHERE)
    for n in (70, 80):
        q, k, v = draw(1, n, 2, 64), draw(1, 90, 1, 64), draw(1, 90, 1, 64, seed=1)
        expect(torch.equal(fast(q, k, v), layer(q, k, v)), f"{n} rows, compiled, have another result")
        q, k, v = (x.to(torch.float8_e4m3fn) for x in (q, k, v))
        expect(torch.equal(eight_fast(q, k, v, scale), by_heads_of(q, k, v, scale)), f"{n} rows of 8 bits, compiled, have another result")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", choices=("cuda", "cpu"))
    parser.add_argument("--only")
    args = parser.parse_args()
    if torch is None:
        print("no PyTorch: 0 passed, 0 failed, 1 skipped")
        return 0
    attention.WHERE = args.on or ("cuda" if torch.cuda.is_available() else "cpu")
    checks = Checks(args.only)
    for function in (scales, quantized, refusals, operators, compiled):
        checks.run(function.__name__, function)
    return checks.tell()


if __name__ == "__main__":
    sys.exit(main())
