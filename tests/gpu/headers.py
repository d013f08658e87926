"""Checks of tests/gpu/launch.py: C headers of `schedc build -o x.h`, compiled with the declarations of
tests/header/cuda.h alone and launched on the tensors that schedc_launch is given: the outputs are the same, launch
after launch."""
import ctypes
import math
import os
import re
import shutil
import tempfile

import torch

import header
from kit import DEVICE, OUT, Skip, expect, launch, make

UNORDERED = {"dQ"}  # sums of the CTAs', in any order
NEAR = 1e-3

# File, kernel or sequence, dimensions, scalars.
CASES = {
    "fa3_stale": ("schedules/fa3_stale.sched", "fa3_stale", {"B": 2, "M": 200, "N": 333, "H": 4, "G": 2}, [0.1]),
    "gemm_pingpong": ("schedules/gemm_pingpong.sched", "gemm_pingpong", {"M": 200, "N": 264, "K": 136}, []),
    "a sequence": ("tests/gpu/sequence.sched", "centred", {"M": 200, "N": 72}, []),
    "a sequence that launches a kernel twice": ("tests/header/twice.sched", "twice", {"M": 300, "N": 70}, [3.0]),
    "FlashAttention-3's gradients":
        ("schedules/fa3_bwd.sched", "attention", {"B": 1, "M": 200, "N": 333, "H": 4, "G": 2}, [0.1]),
}


def shim(name, interface):
    """Functions with arguments that ctypes has: addresses and strides, dimensions; scalars."""
    tensors, dims, scalars = interface
    lines, at = [], 0
    for tensor, shape in tensors.items():
        lines.append(f"a->{tensor} = (CUdeviceptr)v[{at}];")
        rank = len(re.split(r",\s*(?![^()]*\))", shape)) if shape else 0
        lines += [f"a->{tensor}_stride[{d}] = v[{at + 1 + d}];" for d in range(rank)]
        at += 1 + rank
    lines += [f"a->{dim} = v[{at + i}];" for i, dim in enumerate(dims)]
    lines += [f"a->{scalar} = ({kind})s[{i}];" for i, (kind, scalar) in enumerate(scalars)]
    return f"""#include "{name}.h"
static {name}_kernel kernel;
static void fill({name}_args *a, const int64_t *v, const double *s) {{
  memset(a, 0, sizeof *a);
  (void)s;
  {" ".join(lines)}
}}
int begin(void) {{ return {name}_load(&kernel); }}
void end(void) {{ {name}_unload(&kernel); }}
"""


WITH_WORKSPACE = """
size_t room(const int64_t *v, const double *s) { NAME_args a; fill(&a, v, s); return NAME_workspace(&a); }
int go(const int64_t *v, const double *s, uint64_t workspace, void *stream) {
  NAME_args a;
  fill(&a, v, s);
  a.workspace = workspace;
  return NAME_launch(&kernel, &a, (CUstream)stream);
}
"""
WITHOUT = """
size_t room(const int64_t *v, const double *s) { (void)v, (void)s; return 0; }
int go(const int64_t *v, const double *s, uint64_t workspace, void *stream) {
  NAME_args a;
  (void)workspace;
  fill(&a, v, s);
  return NAME_launch(&kernel, &a, (CUstream)stream);
}
"""


def compiled(folder, path, unit):
    """The header as a library; and what its arguments are."""
    compiler = next(filter(shutil.which, ("cc", "gcc", "clang")), None)
    if not compiler:
        raise Skip("there is no C compiler")
    source, library = os.path.join(folder, "shim.c"), os.path.join(folder, "shim.so")
    text = built(folder, path, unit)
    interface = header.interface(text)
    with open(source, "w", encoding="utf-8") as file:
        file.write(shim(unit, interface) + (WITH_WORKSPACE if "workspace;" in text else WITHOUT).replace("NAME", unit))
    succeed(compiler, "-std=c99", "-O1", "-fPIC", "-shared", "-I", "tests/header", source, "-o", library)
    ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)  # has what the library does not define
    so = ctypes.CDLL(library)
    so.room.restype = ctypes.c_size_t
    so.room.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    so.go.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p]
    return so, interface


def built(folder, path, unit):
    """The text of the header."""
    at = os.path.join(folder, unit + ".h")
    succeed("build/release/schedc", "build", path, unit, "-o", at)
    with open(at, encoding="utf-8") as file:
        return file.read()


def succeed(*command):
    done = header.run(*command)
    expect(done.returncode == 0, done.stdout)


def same(name, out, wanted):
    if name in UNORDERED:
        return bool((out.double() - wanted.double()).abs().max() <= NEAR * wanted.double().abs().max())
    return torch.equal(out.contiguous().view(torch.uint8), wanted.contiguous().view(torch.uint8))


def inputs_of(kernel, dims):
    """Tensors, inputs small integers; and the outputs among them, by name."""
    views = [view for _, view in make(kernel, dims, {})]
    for (_, _, direction, _), view in zip(kernel.tensors, views):
        if not direction & OUT:
            view.copy_(torch.randint(-3, 4, view.shape, device=DEVICE))
    return views, {name: view for (name, _, direction, _), view in zip(kernel.tensors, views) if direction & OUT}


def same_outputs(kernels, path, unit, dims, scalars):
    kernel = kernels.get(path, unit)
    views, outputs = inputs_of(kernel, dims)
    launch(kernel, views, scalars)
    wanted = {name: view.clone() for name, view in outputs.items()}
    for name, view in wanted.items():
        expect(not bool(torch.isnan(view).any()), f"schedc_launch leaves NaN in '{name}'")
    with tempfile.TemporaryDirectory() as folder:
        so, (tensors, names, _) = compiled(folder, path, unit)
        expect([header.own(name) for name in tensors] == [name for name, *_ in kernel.tensors], "it has other tensors")
        values = [n for view in views for n in (view.data_ptr(), *view.stride())]
        values += [dims[header.own(name)] for name in names]
        v, s = (ctypes.c_int64 * len(values))(*values), (ctypes.c_double * max(1, len(scalars)))(*scalars)
        expect(so.begin() == 0, "it cannot be loaded")
        try:
            launches(so, v, s, outputs, wanted)
        finally:
            torch.cuda.synchronize()
            so.end()


def launches(so, v, s, outputs, wanted):
    """Of the header's, three in the same workspace."""
    workspace = torch.full((so.room(v, s) + 256,), 0xff, dtype=torch.uint8, device=DEVICE)
    for turn in range(3):
        for view in outputs.values():
            view.fill_(math.nan)
        error = so.go(v, s, (workspace.data_ptr() + 255) // 256 * 256, torch.cuda.current_stream().cuda_stream)
        expect(error == 0, f"launch {turn + 1}: CUDA error {error}")
        torch.cuda.synchronize()
        for name, view in outputs.items():
            expect(same(name, view, wanted[name]), f"launch {turn + 1}: '{name}' is not what schedc_launch gives")


def run(checks, kernels):
    for name, case in CASES.items():
        checks.run(f"C header: {name}", same_outputs, kernels, *case)
