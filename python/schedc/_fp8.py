"""Attention in 8 bits for PyTorch: operators of torch.library, which torch.compile takes as they are. They have no gradients.

    schedc::attention_fp8           fa3_fp8: Q, K and V in 8 bits, with a scale for each head
    schedc::attention_fp8_from16    fa3_fp8_from16: Q, K and V in 16 bits, which the GPU quantizes first

Calls are prepared and made as those of _attention.
"""
from __future__ import annotations

from functools import lru_cache
from typing import Dict, Optional, Tuple

import torch
from torch import Tensor

from . import _core
from ._attention import (_CAUSAL, _EIGHT, _TYPES, _UNITS, _alone, _calls, _check, _How, _operator, _run_first, _Unit,
                         _wants_gradient)

_BLOCKS = (0, 128, 256, 384, 640)  # rows that have a scale in common; 0: all of a head


def _number(unit: _Unit) -> int:
    """What it is called by."""
    _UNITS.append(unit)
    return 4 * (len(_UNITS) - 1)


def _by_heads(inputs: Tuple[Tensor, ...]) -> _How:
    return ("T", _EIGHT[inputs[0].dtype]), ("TO", "bf16"), ("D", inputs[0].shape[-1]), ("block", 0)


def _from16(block: int, incoherent: bool, rotary: bool) -> _Unit:
    """`signs` is the first input where there are any, and Q is the next."""
    def params(inputs: Tuple[Tensor, ...]) -> _How:
        q = inputs[1 if incoherent else 0]
        return ("TO", _TYPES[q.dtype]), ("D", q.shape[-1]), ("block", block), ("incoherent", incoherent), ("rotary", rotary)
    return _Unit("fa3_fp8.sched", "fa3_fp8_from16", params)


_HEADS = _number(_Unit("fa3_fp8.sched", "fa3_fp8", _by_heads))
_FROM16: Dict[Tuple[int, bool, bool], int] = {
    how: _number(_from16(*how)) for how in ((block, incoherent, rotary) for block in _BLOCKS
                                            for incoherent in (False, True) for rotary in (False, True))}


# ---- what the operators compute

def _attention(q: Tensor, k: Tensor, v: Tensor, fq: Tensor, fk: Tensor, fv: Tensor, scale: float, causal: bool) -> Tensor:
    what, inputs = _HEADS + _CAUSAL * causal, (q, k, v, fq, fk, fv)
    made = _core.call(_calls, what, inputs, (scale,))
    if made is None:
        _check(q, k, v, 4, _EIGHT)
        made = _run_first(what, inputs, (scale,), lambda: (_attention_like(q, k, v, fq, fk, fv, scale, causal),))
    return made[0]


def _attention_like(q: Tensor, k: Tensor, v: Tensor, fq: Tensor, fk: Tensor, fv: Tensor, scale: float, causal: bool) -> Tensor:
    return q.new_empty(q.shape, dtype=torch.bfloat16)


def _quantized(q: Tensor, k: Tensor, v: Tensor, signs: Optional[Tensor], cos: Optional[Tensor], sin: Optional[Tensor],
               scale: float, causal: bool, block: int) -> Tensor:
    what = _FROM16[block, signs is not None, cos is not None] + _CAUSAL * causal
    inputs = tuple(x for x in (signs, q, k, v, cos, sin) if x is not None)
    made = _core.call(_calls, what, inputs, (scale,))
    if made is None:
        _check(q, k, v, 4)
        made = _run_first(what, inputs, (scale,), lambda: (torch.empty_like(q, memory_format=torch.contiguous_format),))
    return made[0]


def _quantized_like(q: Tensor, k: Tensor, v: Tensor, signs: Optional[Tensor], cos: Optional[Tensor], sin: Optional[Tensor],
                    scale: float, causal: bool, block: int) -> Tensor:
    return q.new_empty(q.shape)


_library = torch.library.Library("schedc", "FRAGMENT")
_attention_operator = _operator(_library, "attention_fp8(Tensor q, Tensor k, Tensor v, Tensor fq, Tensor fk, Tensor fv, float scale,"
                                " bool causal) -> Tensor", _attention, _attention_like)
_quantized_operator = _operator(_library, "attention_fp8_from16(Tensor q, Tensor k, Tensor v, Tensor? signs, Tensor? cos, Tensor? sin,"
                                " float scale, bool causal, int block) -> Tensor", _quantized, _quantized_like)


# ---- for users

@lru_cache(None)
def _one(device: torch.device) -> Tensor:
    return torch.ones((1, 1, 1), dtype=torch.float32, device=device)


def _scales(name: str, given: Optional[Tensor], q: Tensor, heads: int) -> Tensor:
    """(batch, heads, 1) in f32, of (batch, heads) or, as FlashAttention-3 has them for Q, of fewer heads that are groups."""
    batch = q.shape[0]
    if given is None:
        return _one(q.device).expand(batch, heads, 1)
    if not isinstance(given, Tensor) or given.dtype != torch.float32 or given.dim() != 2 or given.shape[0] != batch:
        what = f"{given.dtype} of shape {tuple(given.shape)}" if isinstance(given, Tensor) else type(given).__name__
        raise TypeError(f"{name}: float32 of shape ({batch}, heads) is wanted, not {what}")
    groups = given.shape[1]
    if groups != heads and (not groups or heads % groups):
        raise ValueError(f"{name} has {groups} heads, and there are {heads}")
    return given.repeat_interleave(heads // groups, 1)[..., None] if groups != heads else given[..., None]


def attention_by_heads(q: Tensor, k: Tensor, v: Tensor, q_descale: Optional[Tensor], k_descale: Optional[Tensor],
                       v_descale: Optional[Tensor], scale: Optional[float], causal: bool) -> Tensor:
    """flash_attn_func on tensors of 8 bits."""
    _check(q, k, v, 4, _EIGHT)
    fq = _scales("q_descale", q_descale, q, q.shape[2])
    fk, fv = (_scales(name, given, q, k.shape[2]) for name, given in (("k_descale", k_descale), ("v_descale", v_descale)))
    given = float(q.shape[-1] ** -0.5 if scale is None else scale), bool(causal)
    run = _attention if _alone(q, k, v) else _attention_operator
    return run(q, k, v, fq, fk, fv, *given)


def flash_attn_fp8_func(q: Tensor, k: Tensor, v: Tensor, softmax_scale: Optional[float] = None, causal: bool = False, *,
                        block: int = 128, signs: Optional[Tensor] = None, rotary_cos: Optional[Tensor] = None,
                        rotary_sin: Optional[Tensor] = None) -> Tensor:
    """flash_attn_func on tensors of 16 bits, computed in 8 (e4m3): Q, K and V are quantized first, with a scale for each `block`
    rows of a head (0: one for each head; else 128, 256, 384 or 640). Returned is O, like q. There are no gradients.

    signs: D numbers of float32, 1 or -1 at random. Q and K are multiplied by a Hadamard matrix with these signs of its rows and
    columns (incoherent processing): S is the same, and an outlier's share is in all elements of its row, so that less is lost.
    rotary_cos, rotary_sin: (keys, D / 2), of the type of q: Q and K are rotated first, elements d and d + D / 2 by the angle of
    the row's position; the last query has the position of the last key."""
    if not _alone(q, k, v):
        _check(q, k, v, 4)
    if _wants_gradient(q, k, v):
        raise NotImplementedError("schedc has no gradients of attention in 8 bits: call it under torch.no_grad()")
    if block not in _BLOCKS:
        raise ValueError(f"block is one of {', '.join(map(str, _BLOCKS))}, not {block!r}")
    if (rotary_cos is None) != (rotary_sin is None):
        raise TypeError("rotary_cos and rotary_sin are given together")
    scale = float(q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale)
    run = _quantized if _alone(q, k, v) else _quantized_operator
    return run(q, k, v, signs, rotary_cos, rotary_sin, scale, bool(causal), block)
