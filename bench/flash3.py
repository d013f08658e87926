"""FlashAttention-3 for peers.py: the operators that it registers with PyTorch, from its own package or from wheels that carry
its kernels. Of these only the library with the kernels is loaded, as the rest of a wheel wants one version of PyTorch. Tensors
are [batch, rows, heads, D]."""
import collections
import functools
import glob
import importlib.metadata
import importlib.util
import os
import sys

# A package, where its library is, the operators that this registers, and the bits of operands that it has kernels for.
Wheel = collections.namedtuple("Wheel", "package library operators bits")
WHEELS = [
    Wheel("flash_attn_3", "_C*.so", "flash_attn_3", (16, 8)),
    Wheel("xformers", "flash_attn_3/_C*.so", "flash_attn_3", (16,)),
    Wheel("fa3_fwd", "_C*.so", "fa3_fwd", (8,)),  # in 16 bits bf16 alone
]


@functools.lru_cache(None)
def find(torch, bits):
    """(The operators for operands of so many bits, whose they are), or None. A wheel that does not load is told of, and passed
    over: most want one version of PyTorch or CUDA."""
    for wheel in WHEELS:
        if bits not in wheel.bits:
            continue
        try:
            found = load(torch, wheel)
        except Exception as error:  # whatever the loader or PyTorch raises
            print(f"FlashAttention-3 of the wheel {wheel.package} does not load: {error}", file=sys.stderr)
            continue
        if found:
            return found
    return None


def load(torch, wheel):
    spec = importlib.util.find_spec(wheel.package)
    for folder in spec and spec.submodule_search_locations or []:
        for library in glob.glob(os.path.join(folder, wheel.library)):
            torch.ops.load_library(library)
            return getattr(torch.ops, wheel.operators), f"the wheel {wheel.package} {importlib.metadata.version(wheel.package)}"
    return None


def told(torch):
    """Whose FlashAttention-3 takes part, or None."""
    whose = [f"{found[1]} ({bits} bits)" for bits in (16, 8) if (found := find(torch, bits))]
    return ", ".join(whose) or None


def forward(ops, q, k, v, causal, **scales):
    """(O, the log-sum-exp)"""
    return ops.fwd(q, k, v, softmax_scale=q.shape[-1] ** -0.5, is_causal=causal, num_splits=1, **scales)[:2]


def gradients(torch, ops, q, k, v, gradient, causal):
    """A function that gives dQ, dK and dV alone, each time in the same memory; the forward runs once, by the first call."""
    made = []

    def run():
        if not made:
            made.append((*forward(ops, q, k, v, causal), [torch.empty_like(x) for x in (q, k, v)]))
        out, sums, results = made[0]
        ops.bwd(gradient, q, k, v, out, sums, *results, softmax_scale=q.shape[-1] ** -0.5, is_causal=causal)
        return results
    return run
