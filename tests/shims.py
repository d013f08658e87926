"""C headers of `schedc build -o x.h` as a caller has them: compiled as C99 with the declarations of tests/header/cuda.h alone,
behind functions whose arguments ctypes has. For tests/device.py (the model of a GPU) and tests/gpu/headers.py."""
import ctypes
import os
import re
import shutil

import header
from checks import Skip, expect

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


def text_of(name, interface):
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


class Shim:
    """The header of a kernel or sequence, compiled in the folder; loaded when it is entered."""

    def __init__(self, folder, schedc, driver, path, unit, *flags):
        compiler = next(filter(shutil.which, ("cc", "gcc", "clang")), None)
        if not compiler:
            raise Skip("there is no C compiler")
        source, library, at = (os.path.join(folder, name) for name in ("shim.c", "shim.so", unit + ".h"))
        succeed(schedc, "build", path, unit, *flags, "-o", at)
        with open(at, encoding="utf-8") as file:
            text = file.read()
        self.tensors, self.dims, self.scalars = header.interface(text)
        with open(source, "w", encoding="utf-8") as file:
            file.write(text_of(unit, (self.tensors, self.dims, self.scalars)))
            file.write((WITH_WORKSPACE if f"{unit}_workspace(" in text else WITHOUT).replace("NAME", unit))
        succeed(compiler, "-std=c99", "-O1", "-fPIC", "-shared", "-I", "tests/header", source, "-o", library)
        ctypes.CDLL(driver, mode=ctypes.RTLD_GLOBAL)  # has what the library does not define
        self.so = ctypes.CDLL(library)
        self.so.room.restype = ctypes.c_size_t
        self.so.room.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self.so.go.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p]

    def __enter__(self):
        expect(self.so.begin() == 0, "it cannot be loaded")
        return self

    def __exit__(self, *_):
        self.so.end()

    def arguments(self, kernel, addresses, strides, dims, scalars):
        """What `go` and `room` take: of the kernel's tensors, in its order."""
        expect([header.own(name) for name in self.tensors] == [name for name, *_ in kernel.tensors], "it has other tensors")
        values = [n for address, steps in zip(addresses, strides) for n in (address, *steps)]
        values += [dims[header.own(name)] for name in self.dims]
        return (ctypes.c_int64 * len(values))(*values), (ctypes.c_double * max(1, len(scalars)))(*scalars)

    def room(self, arguments):
        """Bytes of its workspace."""
        return self.so.room(*arguments)

    def launch(self, arguments, workspace, stream):
        """The driver's error."""
        return self.so.go(*arguments, workspace, stream)


def succeed(*command):
    done = header.run(*command)
    expect(done.returncode == 0, done.stdout)
