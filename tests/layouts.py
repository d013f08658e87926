"""Ways in which a caller's tensors may lie in memory: for tests/strides.py (the interpreter) and tests/gpu/shapes.py.

A layout of a tensor is a dict: `order`, its dimensions from the outermost to the innermost in memory; `pad`, for each
dimension so many elements left free behind each of its blocks; `still`, the dimensions of stride 0 (the same elements
everywhere, for inputs); `offset`, where it begins. The last dimension is contiguous, always, and what the copy engine
reads in multiples of 16 bytes. A set of layouts has a dict for some tensors of a kernel; the others are contiguous.
"""


def place(shape, order=None, pad=None, still=(), offset=0):
    """(strides, offset, elements of the storage), all in elements."""
    strides, step = [0] * len(shape), 1
    for d in reversed(order or range(len(shape))):
        if d not in still:
            strides[d] = step
            step = step * max(1, shape[d]) + (pad or {}).get(d, 0)
    return strides, offset, offset + step


def every(names, **layout):
    return {name: layout for name in names}


# Q, O: [B, M, H, D]; K, V: [B, N, G, D]; L: [B, H, M].
ATTENTION = {
    "contiguous": {},
    "heads before rows": every("QKVO", order=(0, 2, 1, 3)),
    "rows outermost": every("QKVO", order=(1, 0, 2, 3)),
    "an order each": {"Q": {"order": (0, 2, 1, 3)}, "K": {"order": (1, 0, 2, 3)}, "V": {"order": (2, 1, 0, 3)},
                      "O": {"order": (1, 2, 0, 3)}, "L": {"order": (1, 0, 2)}},
    "padded": {**every("QKVO", pad={3: 8, 2: 16, 1: 64, 0: 8}), "L": {"pad": {2: 3, 1: 5}}},
    "Q, K and V in one": every("QKV", pad={2: 1024}),
    "slices": {**every("QKVO", pad={3: 136, 2: 24, 1: 512}, offset=1048), "L": {"pad": {2: 1}, "offset": 7}},
    "one K and V a batch": every("KV", still=(2,)),
    "one K and V a head": every("KV", still=(0,)),
    "one K and V": every("KV", still=(0, 2)),
    "one key": every("KV", still=(1,)),
    "one query": {"Q": {"still": (1, 2), "offset": 8}},
    "padded, permuted, one K": {"Q": {"order": (2, 0, 1, 3), "pad": {3: 8, 0: 64}}, "K": {"still": (0,), "pad": {3: 128}},
                                "V": {"order": (2, 0, 1, 3), "pad": {1: 40}}, "O": {"order": (2, 0, 1, 3), "pad": {3: 56}},
                                "L": {"order": (1, 0, 2), "pad": {2: 9}}},
}

# A: [M, K], B: [N, K], C: [M, N].
GEMM = {
    "contiguous": {},
    "padded": {"A": {"pad": {1: 8}}, "B": {"pad": {1: 24}}, "C": {"pad": {1: 5}}},
    "slices": {"A": {"pad": {1: 512}, "offset": 72}, "B": {"pad": {1: 8}, "offset": 16}, "C": {"pad": {1: 99}, "offset": 3}},
    "one row of A": {"A": {"still": (0,)}},
    "one row of B": {"B": {"still": (0,)}},
}
