#!/usr/bin/env python3
"""Writes tests/unit/npy_oracle.h: .npy files as NumPy writes them.
    python3 tests/unit/npy_oracle.py > tests/unit/npy_oracle.h"""
import io
import numpy as np

rng = np.arange(6, dtype=np.float32).reshape(2, 3)
FILES = [
    ("f32_2x3", rng, (1, 0)),
    ("f16_2x3_v2", rng.astype(np.float16), (2, 0)),
    ("i32_4_v3", np.arange(4, dtype=np.int32), (3, 0)),
    ("u8_scalar", np.array(7, dtype=np.uint8), (1, 0)),
    ("f64_empty", np.zeros((0, 5)), (1, 0)),
    ("fortran", np.asfortranarray(rng), (1, 0)),
    ("big_endian", rng.astype(">f4"), (1, 0)),
    ("complex", rng.astype(np.complex64), (1, 0)),
    ("structured", np.zeros(2, dtype=[("a", "<f4"), ("b", "<i4")]), (1, 0)),
    ("seven_dims", np.zeros((1,) * 7, dtype=np.float32), (1, 0)),
]

print("// npy_oracle.h - written by npy_oracle.py with NumPy; do not edit.")
for name, array, version in FILES:
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version)
    data = out.getvalue()
    print(f"static const u8 {name}[] = {{")
    for i in range(0, len(data), 16):
        print("    " + " ".join(f"0x{b:02x}," for b in data[i : i + 16]))
    print("};")
