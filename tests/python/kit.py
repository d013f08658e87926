"""What the checks of the Python package share: paths, a small schedule, and references in float64 by NumPy."""
import contextlib
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[1:1] = [os.path.join(ROOT, "tests"), os.path.join(ROOT, "bench")]

import numpy  # noqa: E402

SCALE = """kernel scale {
  param BM = 64 in { 64, 128 }
  param T = f16 in { f16, bf16, f32 }
  param offset = 0.5
  in X : T[M, 64]
  in a : f32 = 2
  in n : i32
  out Y : T[M, 64]
  spec { Y[i,j] = a * X[i,j] + offset + n }
  case two { BM in { 64, 128 }, M = 100, n = 3 }
  grid (x : cdiv(M, BM))
  role all : 1 warpgroup, 128 regs {
    reg v : T[BM, 64]
    v[i,j] = a * X[x*BM + i, j] + offset + n
    Y[x*BM + i, j] = v[i,j]
  }
}
"""


@contextlib.contextmanager
def variable(name, value):
    """A variable of the environment with a value, or without one (None)."""
    before = os.environ.pop(name, None)
    os.environ.update({} if value is None else {name: value})
    try:
        yield
    finally:
        os.environ.pop(name, None)
        os.environ.update({} if before is None else {name: before})


def line(source, tuning, dims, unit, gpu="a GPU", problem=(), **other):
    """A line of a store."""
    return json.dumps({"store": 1, "schedule": source.schedule(), "unit": unit, "problem": dict(problem), "dims": dims, "gpu": gpu,
                       "driver": 13000, "nvrtc": 12090, "schedc": "0.2.0", "tuning": tuning, "status": "verified",
                       "inputs": "normal", "cold_ms": 0, "sustained_ms": 0.5, "noise": 0.01, "reference_ms": 1, "launches": 360,
                       "rank": 1, "date": "2026-11-23T10:00:00Z", **other}) + "\n"


def attention(q, k, v, causal=False, scale=None):
    """(O, L) in float64, of arrays in the layout (B, rows, heads, D)."""
    q, k, v = (x.astype(numpy.float64) for x in (q, k, v))
    scale = scale or q.shape[3] ** -0.5
    k, v = (x.repeat(q.shape[2] // x.shape[2], 2) for x in (k, v))
    s = numpy.einsum("bmhd,bnhd->bhmn", q, k) * scale
    m, n = s.shape[2:]
    if causal:
        s[:, :, numpy.arange(n)[None, :] > numpy.arange(m)[:, None] + n - m] = -numpy.inf
    top = s.max(3, keepdims=True, initial=-1e30)
    p = numpy.exp(s - top)
    z = p.sum(3, keepdims=True)
    return numpy.einsum("bhmn,bnhd->bmhd", p / z, v), (top + numpy.log(z))[..., 0]
