"""FlashAttention-3 for peers.py: its own module, flash_attn_interface, or the one in vLLM, which has kernels for packed
sequences alone and adds 8-bit products in two levels."""
import functools


def find(torch):
    """(attention of q, k, v [batch, rows, heads, D], a mask or not, and scales by name; what it is), or None."""
    try:
        from flash_attn_interface import flash_attn_func
        return functools.partial(own, flash_attn_func), "flash_attn_interface"
    except ImportError:
        pass
    try:
        import vllm
        from vllm.vllm_flash_attn import flash_attn_varlen_func
        return functools.partial(packed, torch, flash_attn_varlen_func), f"vLLM {vllm.__version__}"
    except ImportError:
        return None


def own(attention, q, k, v, causal, **scales):
    out = attention(q, k, v, causal=causal, **scales)
    return out[0] if isinstance(out, tuple) else out


def packed(torch, attention, q, k, v, causal, **scales):
    def starts(x):
        return first_rows(torch, x.shape[0], x.shape[1])
    flat = [x.reshape(-1, *x.shape[2:]) for x in (q, k, v)]
    out = attention(*flat, q.shape[1], starts(q), k.shape[1], starts(k), causal=causal, num_splits=1, fa_version=3, **scales)
    return out.view(*q.shape[:-1], v.shape[-1])


@functools.lru_cache(None)
def first_rows(torch, batch, rows):
    return torch.arange(0, (batch + 1) * rows, rows, dtype=torch.int32, device="cuda")
