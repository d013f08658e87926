"""Attention in 8 bits for PyTorch: operators of torch.library, which torch.compile takes as they are. They have no gradients.

    schedc::attention_fp8           fa3_fp8: Q, K and V in 8 bits, with a scale for each head
    schedc::attention_fp8_from16    fa3_fp8_from16: Q, K and V in 16 bits, which the GPU quantizes first

Calls are prepared and made as those of _attention.
"""
from __future__ import annotations

from typing import Dict, Optional, Tuple

import torch
from torch import Tensor

from . import _core
from ._attention import (_CAUSAL, _EIGHT, _TYPES, _UNITS, _alone, _calls, _check, _How, _operator, _run_first, _Unit)

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
    if block not in _BLOCKS:
        raise ValueError(f"block is one of {', '.join(map(str, _BLOCKS))}, not {block}")
    what = _FROM16[block, signs is not None, cos is not None] + _CAUSAL * causal
    inputs = tuple(x for x in (signs, q, k, v, cos, sin) if x is not None)
    made = _core.call(_calls, what, inputs, (scale,))
    if made is None:
        _check(q, k, v, 4)
        made = _run_first(what, inputs, (scale,), lambda: (_quantized_like(q, k, v, signs, cos, sin, scale, causal, block),))
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

_ones: Dict[torch.device, Tensor] = {}


def _one(q: Tensor, alone: bool) -> Tensor:
    """(1, 1, 1) of 1, kept for later calls unless it is no plain tensor, or is only filled when a graph is replayed."""
    made = _ones.get(q.device) if alone else None
    if made is None:
        made = torch.ones((1, 1, 1), dtype=torch.float32, device=q.device)
        if alone and not (q.is_cuda and torch.cuda.is_current_stream_capturing()):
            if q.is_cuda:
                torch.cuda.current_stream(q.device).synchronize()  # other streams will read it
            _ones[q.device] = made
    return made


def _beside(first: Tensor, **given: Optional[Tensor]) -> None:
    """Are all of them tensors, where the first is, and does none want a gradient?"""
    for name, x in given.items():
        if x is not None and not isinstance(x, Tensor):
            raise TypeError(f"{name}: a tensor of PyTorch is wanted, not {type(x).__name__}")
        if x is not None and x.device != first.device:
            raise TypeError(f"{name} is on {x.device}, and q on {first.device}")
        if x is not None and x.requires_grad and torch.is_grad_enabled():
            raise NotImplementedError("schedc has no gradients of attention in 8 bits: call it under torch.no_grad()")


def _scales(name: str, given: Optional[Tensor], q: Tensor, alone: bool, *heads: int) -> Tensor:
    """(batch, heads, 1), of (batch, one of these numbers of heads): the first is how many there are, others are their groups."""
    batch = q.shape[0]
    if given is None:
        return _one(q, alone).expand(batch, heads[0], 1)
    if given.dtype != torch.float32 or given.dim() != 2 or given.shape[0] != batch or given.shape[1] not in heads:
        wanted = " or ".join(f"({batch}, {n})" for n in dict.fromkeys(heads))
        raise TypeError(f"{name}: float32 of shape {wanted} is wanted, not {given.dtype} of shape {tuple(given.shape)}")
    return (given if given.shape[1] == heads[0] else given.repeat_interleave(heads[0] // given.shape[1], 1))[..., None]


def attention_by_heads(q: Tensor, k: Tensor, v: Tensor, q_descale: Optional[Tensor], k_descale: Optional[Tensor],
                       v_descale: Optional[Tensor], scale: Optional[float], causal: bool) -> Tensor:
    """flash_attn_func on tensors of 8 bits."""
    _check(q, k, v, 4, _EIGHT)
    _beside(q, q=q, k=k, v=v, q_descale=q_descale, k_descale=k_descale, v_descale=v_descale)
    alone, heads, groups = _alone(q, k, v), q.shape[2], k.shape[2]
    fq = _scales("q_descale", q_descale, q, alone, heads, *((groups,) if groups and heads % groups == 0 else ()))
    fk, fv = _scales("k_descale", k_descale, q, alone, groups), _scales("v_descale", v_descale, q, alone, groups)
    run = _attention if alone else _attention_operator
    return run(q, k, v, fq, fk, fv, float(q.shape[-1] ** -0.5 if scale is None else scale), bool(causal))


def flash_attn_fp8_func(q: Tensor, k: Tensor, v: Tensor, softmax_scale: Optional[float] = None, causal: bool = False, *,
                        block: int = 128, signs: Optional[Tensor] = None, rotary_cos: Optional[Tensor] = None,
                        rotary_sin: Optional[Tensor] = None) -> Tensor:
    """flash_attn_func on tensors of 16 bits, computed in 8 (e4m3): Q, K and V are quantized first, with a scale for each `block`
    rows of a head (0: one for each head; else 128, 256, 384 or 640). Returned is O, like q. There are no gradients.

    signs: D numbers of float32, 1 or -1 at random; that they are is not checked. Q and K are multiplied by a Hadamard matrix with
    these signs of its rows and columns (incoherent processing): S is the same, and an outlier's share is in all elements of its
    row, so that less is lost.
    rotary_cos, rotary_sin: (keys, D / 2), of the type of q; longer tables have to be cut. Q and K are rotated first, elements d and
    d + D / 2 by the angle of the row's position. The last query has the position of the last key, so there are at least as many
    keys as rows."""
    _check(q, k, v, 4)
    _beside(q, q=q, k=k, v=v, signs=signs, rotary_cos=rotary_cos, rotary_sin=rotary_sin)
    if (rotary_cos is None) != (rotary_sin is None):
        raise TypeError("rotary_cos and rotary_sin are given together")
    scale = float(q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale)
    run = _quantized if _alone(q, k, v) else _quantized_operator
    return run(q, k, v, signs, rotary_cos, rotary_sin, scale, bool(causal), int(block))
