"""Attention for PyTorch with flash-attn's signatures, by the schedules of the package: operators of torch.library, with
gradients, which torch.compile takes as they are.

    schedc::attention                   fa3_stale: (O, log-sum-exp)
    schedc::attention_backward          fa3_bwd, or fa3_bwd_ordered: (dQ, dK, dV)
    schedc::attention_varlen            fa_varlen: (O, log-sum-exp)
    schedc::attention_varlen_backward   fa_varlen_bwd: (dQ, dK, dV)

Tensors of the CPU go to the interpreter, which is exact and slow. Gradients are registered for the key Autograd by hand, as
functions of autograd with one `forward(ctx, …)`: register_autograd costs 15 µs more a call that wants a gradient, and 2 µs one
that wants none, and a `setup_context` of its own 20 µs. Where nobody looks on, the functions of flash-attn, and these functions
of autograd, call what an operator computes and leave its dispatch out: each dispatch to Python is some 4 µs. What calls on
tensors of the same shapes share is prepared once (_prepare); each of them is one call of C then (_core.call).
"""
from __future__ import annotations

from copy import copy
from functools import lru_cache, partial
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from . import _core
from ._kernel import Kernel, Maker
from ._libraries import library_of
from ._source import Source, load
from ._store import Store, table

_TYPES = {torch.float16: "f16", torch.bfloat16: "bf16"}
_EIGHT = {torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2"}
_HEADS = (64, 128, 256)
_MOST = 4096  # shapes that are remembered
# What is called: one of these, 1 more with a causal mask, and 2 more if lists are trusted.
_FORWARD, _BACKWARD, _ORDERED, _VARLEN, _VARLEN_BACKWARD = range(0, 20, 4)
_CAUSAL, _TRUSTING = 1, 2
_calls: Dict[bytes, _core.Prepared] = {}  # by all that a call may differ in
_made: Dict[object, Kernel] = {}  # by their params, and by records: shapes share a kernel, and what is loaded of it
_How = Tuple[Tuple[str, Any], ...]  # the params that are given


class _Unit(NamedTuple):
    """A schedule of the package's, and the params of a call on tensors like these, but for `causal`."""
    file: str
    unit: Optional[str]
    params: Callable[[Tuple[Tensor, ...]], _How]


def _sixteen(inputs: Tuple[Tensor, ...]) -> _How:
    return ("T", _TYPES[inputs[0].dtype]), ("D", inputs[0].shape[-1])


# What is called as n is number n / 4 of these; _fp8 adds its own.
_UNITS: List[_Unit] = [_Unit(name + ".sched", None, _sixteen)
                       for name in ("fa3_stale", "fa3_bwd", "fa3_bwd_ordered", "fa_varlen", "fa_varlen_bwd")]


@lru_cache(None)
def _gpu(device: torch.device) -> Optional[str]:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else None


@lru_cache(None)
def _store(gpu: Optional[str]) -> Optional[Store]:
    return table(gpu)


@lru_cache(None)
def _usual(unit: _Unit, on: str, how: _How) -> Kernel:
    """With the schedule's own params for tuning."""
    return _shared(unit, load(unit.file, unit.unit, on=on, params=dict(how)))


@lru_cache(None)
def _problem(unit: _Unit, on: str, how: _How, gpu: Optional[str]) -> Optional[Mapping[str, Any]]:
    """What to ask the store for, but the dimensions; None: it has no record of the schedule."""
    store, kernel, hashed = _store(gpu), _usual(unit, on, how), Source.read(unit.file).schedule(unit.unit)
    first = next((r for r in store or () if (r.schedule, r.unit) == (hashed, kernel.name)), None)
    if first is None:
        return None
    params = kernel.params
    problem = {name: params[name].value for name in first.problem}
    return {"schedule": hashed, "unit": kernel.name, "problem": problem, "gpu": gpu}


def _shared(unit: _Unit, kernel: Kernel) -> Kernel:
    """It, or the one before with the same params."""
    return _made.setdefault((unit.file, kernel.name, kernel.on, *((p.name, p.value) for p in kernel.params.values())), kernel)


@lru_cache(None)
def _trusting(kernel: Kernel) -> Kernel:
    """The same, to be loaded another time: launches that do not check lists."""
    other = copy(kernel)
    other._loaded, other.trust_elements = {}, True
    return other


def _find(unit: _Unit, inputs: Tuple[Tensor, ...], causal: bool, tensors: Tuple[Tensor, ...]) -> Kernel:
    """The kernel for tensors like these; with params by their shape, if there is a store that knows it."""
    first = inputs[0]
    on, gpu = "cuda" if first.is_cuda else "cpu", _gpu(first.device)
    how = *unit.params(inputs), ("causal", causal)
    usual, store, problem = _usual(unit, on, how), _store(gpu), _problem(unit, on, how, gpu)
    if store is None or problem is None:
        return usual
    known = usual.dims
    dims = {name: size for t, x in zip(usual.tensors, tensors) for name, size in zip(t.dims, x.shape) if name in known}
    record = store.find(dims=dims, **problem)
    if record is None:
        return usual
    key = unit, on, how, gpu, record.line
    if key not in _made:
        tuned = load(unit.file, unit.unit, on=on, params=dict(how), store=store, dims=dims, gpu=gpu)
        _made[key] = _shared(unit, tuned)
    return _made[key]


def _prepare(what: int, inputs: Tuple[Tensor, ...], scalars: Tuple[float, ...], outputs: Tuple[Tensor, ...]) -> None:
    """Of outputs the shapes are kept, and no memory. On the current GPU they are made without the dispatcher, which takes
    longer than the memory."""
    if len(_calls) >= _MOST:
        _calls.clear()
    first, tensors = inputs[0], inputs + outputs
    kernel = _find(_UNITS[what // 4], inputs, bool(what & _CAUSAL), tensors)
    here = tuple((_empty_cuda, (tuple(x.shape), x.stride(), x.dtype)) for x in outputs) if _empty_cuda else None
    anywhere = tuple((torch.empty_like, (x,)) for x in outputs)

    def room(size: int) -> Tuple[Optional[Maker], Maker]:
        words = (size + 3) // 4
        usual = partial(torch.empty, words, dtype=torch.float32, device=first.device)
        return (_empty_cuda, ((words,), (1,), torch.float32)) if _empty_cuda else None, (usual, ())
    kernel = _trusting(kernel) if what & _TRUSTING else kernel
    prepared = kernel.prepared(tensors, scalars, library_of(first), here, anywhere, room)
    _calls[_core.key(what, inputs, scalars)] = prepared
    for x in outputs:
        x.untyped_storage().resize_(0)


def _run_first(what: int, inputs: Tuple[Tensor, ...], scalars: Tuple[float, ...], like: Callable[[], Tuple[Tensor, ...]]) -> Any:
    """The outputs of a call that is not prepared, or of inputs whose elements of a row do not lie beside each other. Tensors
    without memory have outputs without memory."""
    if inputs[0].is_meta:
        return like()
    if any(x != x for x in scalars):  # to a launch it would mean the default
        raise ValueError("softmax_scale is NaN")
    inputs = tuple(map(_rows, inputs))
    if _core.key(what, inputs, scalars) not in _calls:
        _prepare(what, inputs, scalars, like())
    return _core.call(_calls, what, inputs, scalars)


def _keys_first(made: Tuple[Tensor, Tensor, Tensor]) -> Tuple[Tensor, Tensor, Tensor]:
    """The gradients as schedules have them."""
    dq, dk, dv = made
    return dk, dv, dq


def _rows(x: Tensor) -> Tensor:
    """What the schedules take: elements of a row beside each other."""
    return x if x.is_contiguous() or x.stride(-1) == 1 else x.contiguous()


# ---- what the operators compute

def _forward(q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool, deterministic: bool = False) -> Tuple[Tensor, ...]:
    """It has the same bits each time; its gradients are `deterministic` or not."""
    made = _core.call(_calls, _FORWARD + causal, (q, k, v), (scale,))
    if made is None:
        _check(q, k, v, 4)
        made = _run_first(_FORWARD + causal, (q, k, v), (scale,), lambda: _forward_like(q, k, v, scale, causal))
    return made


def _forward_like(q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool,
                  deterministic: bool = False) -> Tuple[Tensor, Tensor]:
    b, m, h, _ = q.shape
    return q.new_empty(q.shape), q.new_empty((b, h, m), dtype=torch.float32)


def _backward(grad: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor, l: Tensor, scale: float, causal: bool,
              deterministic: bool = False) -> Tuple[Tensor, Tensor, Tensor]:
    what, inputs = (_ORDERED if deterministic else _BACKWARD) + causal, (o, grad, l, q, k, v)
    dk, dv, dq = _core.call(_calls, what, inputs, (scale,)) or _run_first(
        what, inputs, (scale,), lambda: _keys_first(_backward_like(grad, q, k, v, o, l, scale, causal)))
    return dq, dk, dv


def _backward_like(grad: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor, l: Tensor, scale: float, causal: bool,
                   deterministic: bool = False) -> Tuple[Tensor, Tensor, Tensor]:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


def _varlen(q: Tensor, k: Tensor, v: Tensor, starts_q: Tensor, starts_k: Tensor, longest_q: int, longest_k: int,
            scale: float, causal: bool, trust_elements: bool = False) -> Tuple[Tensor, ...]:
    what, inputs, scalars = _VARLEN + causal + _TRUSTING * trust_elements, (q, k, v, starts_q, starts_k), (longest_q, scale)
    made = _core.call(_calls, what, inputs, scalars)
    if made is None:
        _check(q, k, v, 3)
        _check_starts(starts_q, starts_k)
        made = _run_first(what, inputs, scalars,
                    lambda: _varlen_like(q, k, v, starts_q, starts_k, longest_q, longest_k, scale, causal))
    return made


def _varlen_like(q: Tensor, k: Tensor, v: Tensor, starts_q: Tensor, starts_k: Tensor, longest_q: int, longest_k: int,
                 scale: float, causal: bool, trust_elements: bool = False) -> Tuple[Tensor, Tensor]:
    return q.new_empty(q.shape), q.new_empty((q.shape[1], q.shape[0]), dtype=torch.float32)


def _varlen_backward(grad: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor, l: Tensor, starts_q: Tensor, starts_k: Tensor,
                     longest_q: int, longest_k: int, scale: float, causal: bool,
                     trust_elements: bool = False) -> Tuple[Tensor, Tensor, Tensor]:
    what, scalars = _VARLEN_BACKWARD + causal + _TRUSTING * trust_elements, (longest_q, scale, longest_k)
    inputs = o, grad, l, starts_q, q, k, v, starts_k
    dk, dv, dq = _core.call(_calls, what, inputs, scalars) or _run_first(what, inputs, scalars, lambda: _keys_first(
        _varlen_backward_like(grad, q, k, v, o, l, starts_q, starts_k, longest_q, longest_k, scale, causal)))
    return dq, dk, dv


def _varlen_backward_like(grad: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor, l: Tensor, starts_q: Tensor,
                          starts_k: Tensor, longest_q: int, longest_k: int, scale: float, causal: bool,
                          trust_elements: bool = False) -> Tuple[Tensor, Tensor, Tensor]:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


# ---- the operators, and their gradients

def _operator(library: torch.library.Library, schema: str, run: Callable[..., Any], like: Callable[..., Any]) -> Any:
    """An operator on tensors of GPUs and of the CPU, and its stand-in on tensors without data."""
    name = schema.partition("(")[0]
    library.define(schema)
    for where in ("CUDA", "CPU"):
        library.impl(name, run, where)
    torch.library.register_fake(f"schedc::{name}", like, lib=library)
    return getattr(torch.ops.schedc, name).default


_library = torch.library.Library("schedc", "DEF")
_attention = _operator(_library, "attention(Tensor q, Tensor k, Tensor v, float scale, bool causal, bool deterministic=False)"
                       " -> (Tensor, Tensor)", _forward, _forward_like)
_attention_backward = _operator(
    _library, "attention_backward(Tensor grad, Tensor q, Tensor k, Tensor v, Tensor o, Tensor l, float scale, bool causal,"
    " bool deterministic=False) -> (Tensor, Tensor, Tensor)", _backward, _backward_like)
_attention_varlen = _operator(
    _library, "attention_varlen(Tensor q, Tensor k, Tensor v, Tensor starts_q, Tensor starts_k, int longest_q, int longest_k,"
    " float scale, bool causal, bool trust_elements=False) -> (Tensor, Tensor)", _varlen, _varlen_like)
_attention_varlen_backward = _operator(
    _library, "attention_varlen_backward(Tensor grad, Tensor q, Tensor k, Tensor v, Tensor o, Tensor l, Tensor starts_q,"
    " Tensor starts_k, int longest_q, int longest_k, float scale, bool causal, bool trust_elements=False)"
    " -> (Tensor, Tensor, Tensor)", _varlen_backward, _varlen_backward_like)
_below = torch._C._AutoDispatchBelowAutograd
_empty_cuda: Any = getattr(torch._C._dynamo.guards, "_empty_strided_cuda", None)  # what torch.compile's code calls
_is_compiling, _intercepted = torch.compiler.is_compiling, torch._C._len_torch_dispatch_stack
_transformed, _traced = torch._C._functorch.peek_interpreter_stack, torch._C._get_tracing_state


def _alone(x: Tensor, y: Tensor, z: Tensor) -> bool:
    """Are these plain tensors, and does nobody trace, transform or intercept operators?"""
    return (not _is_compiling() and type(x) is Tensor and type(y) is Tensor and type(z) is Tensor
            and not _intercepted() and _transformed() is None and _traced() is None)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool,
                deterministic: bool = False) -> Tuple[Tensor, Tensor]:
        if _alone(q, k, v):
            o, l = _forward(q, k, v, scale, causal)
        else:
            with _below():
                o, l = _attention(q, k, v, scale, causal, deterministic)
        ctx.save_for_backward(q, k, v, o, l)
        ctx.given = scale, causal, deterministic
        ctx.mark_non_differentiable(l)
        ctx.set_materialize_grads(False)
        return o, l

    @staticmethod
    def backward(ctx: Any, grad: Optional[Tensor], _: object) -> Tuple[Optional[Tensor], ...]:
        if grad is None:
            return (None,) * 6
        q, k, v, o, l = ctx.saved_tensors
        run = _backward if _alone(grad, q, k) and not torch.is_grad_enabled() else _attention_backward
        return (*run(grad, q, k, v, o, l, *ctx.given), None, None, None)


class _Varlen(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, starts_q: Tensor, starts_k: Tensor,
                *given: Any) -> Tuple[Tensor, Tensor]:
        if _alone(q, k, v):
            o, l = _varlen(q, k, v, starts_q, starts_k, *given)
        else:
            with _below():
                o, l = _attention_varlen(q, k, v, starts_q, starts_k, *given)
        ctx.save_for_backward(q, k, v, o, l, starts_q, starts_k)
        ctx.given = given
        ctx.mark_non_differentiable(l)
        ctx.set_materialize_grads(False)
        return o, l

    @staticmethod
    def backward(ctx: Any, grad: Optional[Tensor], _: object) -> Tuple[Optional[Tensor], ...]:
        if grad is None:
            return (None,) * 10
        q, k, v, o, l, starts_q, starts_k = ctx.saved_tensors
        run = _varlen_backward if _alone(grad, q, k) and not torch.is_grad_enabled() else _attention_varlen_backward
        return (*run(grad, q, k, v, o, l, starts_q, starts_k, *ctx.given), *(None,) * 7)


class _AttentionAlone(torch.autograd.Function):
    """Of plain tensors, and of O alone; the rest is one argument. Each argument and each output costs time."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, given: Tuple[float, bool, bool]) -> Tensor:
        o, l = _forward(q, k, v, *given)
        ctx.save_for_backward(q, k, v, o, l)
        ctx.given = given
        return o

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Optional[Tensor], ...]:
        return _Attention.backward(ctx, grad, None)[:4]


class _VarlenAlone(torch.autograd.Function):
    """Likewise."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, starts_q: Tensor, starts_k: Tensor, given: Tuple[Any, ...]) -> Tensor:
        o, l = _varlen(q, k, v, starts_q, starts_k, *given)
        ctx.save_for_backward(q, k, v, o, l, starts_q, starts_k)
        ctx.given = given
        return o

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Optional[Tensor], ...]:
        return _Varlen.backward(ctx, grad, None)[:6]


# Without what some versions of PyTorch do in Python for functorch, which does not look on where tensors are alone.
_apply_alone = super(torch.autograd.Function, _AttentionAlone).apply
_apply_varlen_alone = super(torch.autograd.Function, _VarlenAlone).apply


def _wants_gradient(q: Tensor, k: Tensor, v: Tensor) -> bool:
    return torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)


def _autograd(q: Tensor, k: Tensor, v: Tensor, *given: Any) -> Any:
    if _wants_gradient(q, k, v):
        return _Attention.apply(q, k, v, *given)
    with _below():
        return _attention(q, k, v, *given)


def _autograd_backward(*given: Any) -> Any:
    if torch.is_grad_enabled() and any(x.requires_grad for x in given[:6]):
        raise NotImplementedError("schedc has no schedule for second derivatives of attention")
    with _below():
        return _attention_backward(*given)


def _autograd_varlen(q: Tensor, k: Tensor, v: Tensor, *given: Any) -> Any:
    if _wants_gradient(q, k, v):
        return _Varlen.apply(q, k, v, *given)
    with _below():
        return _attention_varlen(q, k, v, *given)


def _autograd_varlen_backward(*given: Any) -> Any:
    if torch.is_grad_enabled() and any(x.requires_grad for x in given[:6]):
        raise NotImplementedError("schedc has no schedule for second derivatives of attention")
    with _below():
        return _attention_varlen_backward(*given)


_library.impl("attention", _autograd, "Autograd")
_library.impl("attention_backward", _autograd_backward, "Autograd")
_library.impl("attention_varlen", _autograd_varlen, "Autograd")
_library.impl("attention_varlen_backward", _autograd_varlen_backward, "Autograd")


# ---- flash-attn's signatures

def _check(q: Tensor, k: Tensor, v: Tensor, rank: int, types: Mapping[torch.dtype, str] = _TYPES) -> None:
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: a tensor of PyTorch is wanted, not {type(x).__name__}")
    if k.device != q.device or v.device != q.device:
        raise TypeError(f"q, k and v are on one device, not on {q.device}, {k.device}, {v.device}")
    if q.dtype not in types or k.dtype != q.dtype or v.dtype != q.dtype:
        known = " or all ".join(str(dtype).removeprefix("torch.") for dtype in types)
        raise TypeError(f"q, k and v are all {known}, not {q.dtype}, {k.dtype}, {v.dtype}")
    if q.dim() != rank or q.shape[-1] not in _HEADS:
        raise NotImplementedError(f"q has the shape {tuple(q.shape)}: {rank} dimensions are wanted, the last of "
                                  f"{', '.join(map(str, _HEADS))}")


def _check_starts(starts_q: Tensor, starts_k: Tensor) -> None:
    for name, x in (("cu_seqlens_q", starts_q), ("cu_seqlens_k", starts_k)):
        if not isinstance(x, Tensor) or x.dtype != torch.int32 or x.dim() != 1:
            what = f"{x.dtype} of shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
            raise TypeError(f"{name}: a tensor of torch.int32 with one dimension is wanted, not {what}")
    if len(starts_q) != len(starts_k):
        raise ValueError(f"cu_seqlens_q and cu_seqlens_k have the same length, not {len(starts_q)} and {len(starts_k)}")


def _check_how(softmax_scale: Optional[float], causal: bool) -> None:
    """Calls in the order of FlashAttention 2 show here: its fourth argument, dropout_p, comes before the scale."""
    order = "the order is FlashAttention-3's, without dropout_p: give what comes behind the tensors and lengths by name"
    if causal not in (False, True):
        raise TypeError(f"causal: True or False is wanted, not {causal!r}; {order}")
    if softmax_scale is not None and not softmax_scale > 0:
        raise ValueError(f"softmax_scale: a number above 0 is wanted, not {softmax_scale!r}; {order}")


def _only_defaults(dropout_p: float, window_size: Tuple[int, int], softcap: float, alibi_slopes: Optional[Tensor],
                   return_attn_probs: bool, deterministic: bool = False, block_table: Optional[Tensor] = None) -> None:
    for name, given, default in (("dropout_p", dropout_p, 0.0), ("window_size", tuple(window_size), (-1, -1)),
                                 ("softcap", softcap, 0.0), ("alibi_slopes", alibi_slopes, None),
                                 ("deterministic", deterministic, False), ("return_attn_probs", return_attn_probs, False),
                                 ("block_table", block_table, None)):
        if given is not default and (default is None or given != default):
            raise NotImplementedError(f"{name}: schedc's attention has only {default!r}")


def flash_attn_func(q: Tensor, k: Tensor, v: Tensor, softmax_scale: Optional[float] = None, causal: bool = False, *,
                    dropout_p: float = 0.0, window_size: Tuple[int, int] = (-1, -1), softcap: float = 0.0,
                    alibi_slopes: Optional[Tensor] = None, deterministic: bool = False, return_attn_probs: bool = False,
                    q_descale: Optional[Tensor] = None, k_descale: Optional[Tensor] = None,
                    v_descale: Optional[Tensor] = None) -> Tensor:
    """softmax(scale * Q Kᵀ) V, with flash-attn's layouts, and FlashAttention-3's order of arguments (FlashAttention 2 has
    dropout_p before softmax_scale): q (batch, rows, heads, D), k and v (batch, keys, groups, D); heads are a multiple of
    groups, D is 64, 128 or 256, elements are float16 or bfloat16. Returned is O, like q.

    Elements may also be float8_e4m3fn or float8_e5m2, as with FlashAttention-3. Then O is bfloat16, and there are no gradients.
    q_descale (batch, heads or groups), k_descale and v_descale (batch, groups): what Q, K and V of a head are multiplied by;
    float32, 1 if None. They are above 0: with others the result is NaN or wrong, and nothing looks.

    softmax_scale: 1 / sqrt(D) if None. causal: row i sees the keys up to i + keys - rows. Gradients of q, k and v are those of
    the schedule fa3_bwd, which adds up dQ (with grouped heads dK and dV, too) in no fixed order; `deterministic`, those of
    fa3_bwd_ordered, with the same bits each time, for D of 64 and 128. What flash-attn has beyond this can be given by name if
    it is the default, and else is a NotImplementedError."""
    if dropout_p or window_size != (-1, -1) or softcap or alibi_slopes is not None or return_attn_probs:
        _only_defaults(dropout_p, window_size, softcap, alibi_slopes, return_attn_probs)
    if softmax_scale is not None or causal is not False:
        _check_how(softmax_scale, causal)
    if getattr(q, "dtype", None) in _EIGHT:
        from ._fp8 import attention_by_heads
        return attention_by_heads(q, k, v, q_descale, k_descale, v_descale, softmax_scale, causal)
    if q_descale is not None or k_descale is not None or v_descale is not None:
        raise TypeError("q_descale, k_descale and v_descale are for tensors of 8 bits")
    alone = _alone(q, k, v)
    if not alone:
        _check(q, k, v, 4)
    if deterministic and q.shape[-1] == 256:
        raise NotImplementedError("deterministic: schedc's attention has it for 64 and 128 columns, and q has 256")
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    if not alone:
        out: Tensor = _attention(q, k, v, scale, causal, deterministic)[0]
    elif _wants_gradient(q, k, v):
        out = _apply_alone(q, k, v, (float(scale), bool(causal), deterministic))
    else:
        out = _forward(q, k, v, float(scale), bool(causal))[0]
    return out


def flash_attn_varlen_func(q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: int,
                           max_seqlen_k: int, softmax_scale: Optional[float] = None, causal: bool = False, *,
                           dropout_p: float = 0.0, window_size: Tuple[int, int] = (-1, -1), softcap: float = 0.0,
                           alibi_slopes: Optional[Tensor] = None, deterministic: bool = False,
                           return_attn_probs: bool = False, block_table: Optional[Tensor] = None,
                           trust_elements: bool = False) -> Tensor:
    """flash_attn_func over sequences of different lengths, packed end to end: q (rows of all, heads, D), k and v (keys of all,
    groups, D). cu_seqlens: int32, the first row of each sequence, and the end. max_seqlen_q: rows of the longest sequence;
    rows beyond it are not written. max_seqlen_k: keys of the longest; those beyond it get no gradient. Gradients are those of the
    schedule fa_varlen_bwd, which adds up dQ (with grouped heads dK and dV, too) in no fixed order.

    The kernels rely on cu_seqlens: no element is less than the one before, or outside of 0 … rows. On a GPU each launch has the
    GPU look at that first, which costs some 3 µs; if it is not so, the kernel does not run, and whoever waits for the GPU gets
    CUDA error 719. trust_elements: nothing looks; with other elements the kernels may hang, or write anywhere."""
    if (dropout_p or window_size != (-1, -1) or softcap or alibi_slopes is not None or deterministic
            or return_attn_probs or block_table is not None):
        _only_defaults(dropout_p, window_size, softcap, alibi_slopes, return_attn_probs, deterministic, block_table)
    if softmax_scale is not None or causal is not False:
        _check_how(softmax_scale, causal)
    alone = _alone(q, k, v)
    if not alone:
        _check(q, k, v, 3)
        _check_starts(cu_seqlens_q, cu_seqlens_k)
    if max_seqlen_q is None or max_seqlen_k is None:
        raise TypeError("max_seqlen_q and max_seqlen_k: the rows of the longest sequences are wanted, not None")
    if max_seqlen_q < 0 or max_seqlen_k < 0:
        raise ValueError(f"max_seqlen_q and max_seqlen_k: the rows of the longest sequences are wanted, not {max_seqlen_q} and "
                         f"{max_seqlen_k}")
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    starts = cu_seqlens_q, cu_seqlens_k
    longest = min(max_seqlen_q, q.shape[0]), min(max_seqlen_k, k.shape[0])  # no tiles for rows that are in no sequence
    if not alone:
        out: Tensor = _attention_varlen(q, k, v, *starts, *longest, scale, causal, trust_elements)[0]
        return out
    given: Tuple[Any, ...] = *map(int, longest), float(scale), bool(causal), bool(trust_elements)
    wants = _wants_gradient(q, k, v)
    out = _apply_varlen_alone(q, k, v, *starts, given) if wants else _varlen(q, k, v, *starts, *given)[0]
    return out
