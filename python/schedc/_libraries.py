"""What the package needs of the libraries whose arrays it is called with: arrays for outputs, room for a workspace, the
device of an array, and the current stream. A library is imported only once it was seen in a caller's array."""
from __future__ import annotations

import sys
from functools import partial
from typing import Any, Callable, Dict, Optional, Protocol, Tuple

from ._views import Memory


class Library(Protocol):
    """One of them. A device is None for host memory, else the number of a CUDA device."""

    waits: bool  # nobody orders what is on a stream of ours before what this library does next: the call waits itself

    def device(self, array: Any) -> Optional[int]:
        """Where the array is."""

    def stream(self, device: int) -> int:
        """The handle of the stream that is current there."""

    def empty(self, shape: Tuple[int, ...], type_: str, device: Optional[int]) -> Any:
        """An array without contents, rows one after the other."""

    def maker(self, shape: Tuple[int, ...], type_: str, device: Optional[int]) -> Callable[[], Any]:
        """What makes such arrays, again and again."""

    def room(self, size: int, device: int) -> Tuple[object, int]:
        """That many bytes at a multiple of 256: what keeps them, and their address."""


class _Plain:
    """Of libraries for which all arrays are made in one way."""
    empty: Callable[..., Any]

    def maker(self, shape: Tuple[int, ...], type_: str, device: Optional[int]) -> Callable[[], Any]:
        return partial(self.empty, shape, type_, device)


class _Torch:
    waits = False

    def __init__(self) -> None:
        import torch
        self.torch = torch
        self.types = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn,
                      "e5m2": torch.float8_e5m2, "i32": torch.int32}

    def device(self, array: Any) -> Optional[int]:
        return int(array.device.index or 0) if array.is_cuda else None

    def stream(self, device: int) -> int:
        return int(self.torch.cuda.current_stream(device).cuda_stream)

    def empty(self, shape: Tuple[int, ...], type_: str, device: Optional[int]) -> Any:
        return self.torch.empty(shape, dtype=self.types[type_], device="cpu" if device is None else f"cuda:{device}")

    def maker(self, shape: Tuple[int, ...], type_: str, device: Optional[int]) -> Callable[[], Any]:
        """One is kept without its memory: `empty_like` is the fastest way to others."""
        like = self.empty(shape, type_, device)
        like.untyped_storage().resize_(0)
        return partial(self.torch.empty_like, like)

    def room(self, size: int, device: int) -> Tuple[object, int]:
        held = self.torch.empty(size, dtype=self.torch.uint8, device=f"cuda:{device}")
        return held, int(held.data_ptr())


class _CuPy(_Plain):
    waits = False

    def __init__(self) -> None:
        import cupy
        self.cupy = cupy

    def device(self, array: Any) -> Optional[int]:
        return int(array.device.id)

    def stream(self, device: int) -> int:
        with self.cupy.cuda.Device(device):
            return int(self.cupy.cuda.get_current_stream().ptr)

    def empty(self, shape: Tuple[int, ...], type_: str, device: Optional[int]) -> Any:
        with self.cupy.cuda.Device(device):
            return self.cupy.empty(shape, dtype=numpy_type(type_))

    def room(self, size: int, device: int) -> Tuple[object, int]:
        with self.cupy.cuda.Device(device):
            held = self.cupy.empty(size, dtype="uint8")
        return held, int(held.data.ptr)


class _Jax(_Plain):
    """Its arrays are immutable to itself, and it has no current stream: outputs are new arrays, written on the default stream,
    and the call waits until they are there."""
    waits = True

    def __init__(self) -> None:
        import jax
        self.jax = jax

    def device(self, array: Any) -> Optional[int]:
        kind, number = array.__dlpack_device__()
        return int(number) if kind == 2 else None

    def stream(self, device: int) -> int:
        return 0

    def empty(self, shape: Tuple[int, ...], type_: str, device: Optional[int]) -> Any:
        where = self.jax.devices("cpu")[0] if device is None else self.jax.devices("cuda")[device]
        # Of arrays that are made on the device; one made of a constant might share its memory with others.
        made = self.jax.device_put(self.jax.numpy.zeros(shape, numpy_type(type_)), where)
        return self.jax.block_until_ready(self.jax.numpy.array(made, copy=True))

    def room(self, size: int, device: int) -> Tuple[object, int]:
        held = self.empty(((size + 3) // 4,), "i32", device)
        return held, int(held.unsafe_buffer_pointer())


class _NumPy(_Plain):
    waits = False

    def device(self, array: Any) -> Optional[int]:
        return array.device if isinstance(array, Memory) else None

    def stream(self, device: int) -> int:
        return 0

    def empty(self, shape: Tuple[int, ...], type_: str, device: Optional[int]) -> Any:
        if device is not None:
            raise TypeError("outputs at addresses on a GPU are not made here: give them")
        import numpy
        return numpy.empty(shape, numpy_type(type_))

    def room(self, size: int, device: int) -> Tuple[object, int]:
        raise TypeError("a workspace for tensors at addresses is not made here: `launch` takes one")


def numpy_type(type_: str) -> Any:
    """NumPy's dtype; of bf16, e4m3 and e5m2 that of the package ml_dtypes."""
    import numpy
    if type_ in ("f32", "f16", "i32"):
        return numpy.dtype({"f32": "float32", "f16": "float16", "i32": "int32"}[type_])
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(f"an output of type {type_} needs the package ml_dtypes, or is given by the caller") from None
    return numpy.dtype({"bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}[type_])


_KINDS: Dict[str, Any] = {"torch": _Torch, "cupy": _CuPy, "jax": _Jax, "jaxlib": _Jax}
_known: Dict[type, Library] = {}
_NUMPY_ARRAYS = _NumPy()


def library_of(array: Any) -> Library:
    """The library that an array is of. Arrays with DLPack of libraries that are not known here can be inputs and outputs, but
    outputs are not made for them."""
    kind = type(array)
    found = _known.get(kind)
    if found is None:
        roots = [base.__module__.split(".")[0] for base in kind.__mro__]
        root = next((r for r in roots if r in _KINDS and r in sys.modules), None)
        found = _known[kind] = _KINDS[root]() if root else _NUMPY_ARRAYS
    return found


