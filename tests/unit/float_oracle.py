#!/usr/bin/env python3
"""Writes tests/unit/float_oracle.h: what NumPy and ml_dtypes say of every code and every rounding
midpoint of the narrow types, as one hash each. Run it again after changing what tests/unit/float.c
hashes:  python3 tests/unit/float_oracle.py > tests/unit/float_oracle.h
Needs numpy and ml_dtypes (pip install ml_dtypes); the test itself needs neither."""
import ml_dtypes
import numpy as np

TYPES = [
    ("f16", np.float16, np.uint16, 0x7C00, None),
    ("bf16", ml_dtypes.bfloat16, np.uint16, 0x7F80, None),
    ("e4m3", ml_dtypes.float8_e4m3fn, np.uint8, 0x7F, 448.0),
    ("e5m2", ml_dtypes.float8_e5m2, np.uint8, 0x7C, 57344.0),
]


def fnv(values):
    h = 0xCBF29CE484222325
    for v in values:
        h = ((h ^ int(v)) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def decoded(dtype, code_type):
    """The f32 bits of every code; NaNs count as 0x7fc00000."""
    codes = np.arange(1 << (8 * np.dtype(code_type).itemsize), dtype=np.uint32).astype(code_type)
    with np.errstate(invalid="ignore"):
        values = codes.view(dtype).astype(np.float32)
    return np.where(np.isnan(values), np.uint32(0x7FC00000), values.view(np.uint32))


def probes(dtype, code_type, special):
    """For each finite code >= 0: the value, the midpoint to the next, and the midpoint's neighbours."""
    codes = np.arange(special, dtype=np.uint32).astype(code_type)
    values = codes.view(dtype).astype(np.float64)
    above = np.append(values[1:], 2 * values[-1] - values[-2])
    mid = ((values + above) / 2).astype(np.float32)
    rows = [values.astype(np.float32), np.nextafter(mid, np.float32(0)), mid,
            np.nextafter(mid, np.float32(np.inf))]
    pos = np.stack(rows, axis=1).ravel()
    extra = np.array([3.0e38, np.inf, 1e-40, np.float32(2.0) ** -149], dtype=np.float32)
    pos = np.concatenate([pos, extra])
    return np.concatenate([pos, -pos])


def encoded(dtype, code_type, special, saturate):
    x = probes(dtype, code_type, special)
    if saturate:
        x = np.clip(x, -saturate, saturate)
    with np.errstate(over="ignore"):
        return x.astype(dtype).view(code_type)


print("// float_oracle.h - written by float_oracle.py with NumPy and ml_dtypes; do not edit.")
print("// {all codes decoded, all probes encoded}: FNV-1a over 64 bits, one value a step.")
print("static const u64 oracle[][2] = {")
for name, dtype, code_type, special, saturate in TYPES:
    a, b = fnv(decoded(dtype, code_type)), fnv(encoded(dtype, code_type, special, saturate))
    print(f"    [EL_{name.upper()}] = {{0x{a:016x}, 0x{b:016x}}},")
print("};")
