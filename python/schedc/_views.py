"""Arrays as the extension module takes them where their type offers no table of C functions: NumPy's by their attributes,
others by DLPack's capsules, and memory that is known by its address alone."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Tuple

from . import _core

TYPES = ("f32", "f16", "bf16", "e4m3", "e5m2", "i32")  # in the order of schedc_type
SIZES = {"f32": 4, "f16": 2, "bf16": 2, "e4m3": 1, "e5m2": 1, "i32": 4}
# The same, as NumPy and PyTorch name them.
NUMBERS = {"float32": 0, "float16": 1, "bfloat16": 2, "float8_e4m3fn": 3, "float8_e5m2": 4, "int32": 5}
_CPU, _CUDA = 1, 2  # DLPack's kinds of devices
_NO_WAIT, _DEFAULT_STREAM = -1, 1  # of DLPack's argument `stream`

# (address, number of the type, shape, strides in elements or None, kind of device, device, readonly, what keeps it alive)
Described = Tuple[int, int, Tuple[int, ...], Optional[Tuple[int, ...]], int, int, bool, object]


@dataclass(frozen=True)
class Memory:
    """A tensor that the caller knows by its address. Whoever owns the memory keeps it until the work on it has ended.

    `device`: the number of a CUDA device, or None for host memory. `strides` are in elements; None: rows one after the
    other."""
    address: int
    type: str
    shape: Tuple[int, ...]
    strides: Optional[Tuple[int, ...]] = None
    device: Optional[int] = None


def view(array: Any) -> Described:
    """What the extension module needs to know of an array; its memory is shared, not copied."""
    if isinstance(array, Memory):
        kind = _CPU if array.device is None else _CUDA
        if array.type not in TYPES:
            raise TypeError(f"{array.type!r} is none of schedc's types, which are {', '.join(TYPES)}")
        return (array.address, TYPES.index(array.type), tuple(array.shape), array.strides, kind, array.device or 0, False, array)
    if hasattr(array, "__array_interface__") and hasattr(array, "dtype"):
        return _numpy(array)
    if hasattr(array, "__dlpack__"):
        return _core.decode(_capsule(array))
    raise TypeError(f"a tensor is wanted (of PyTorch, CuPy, JAX, NumPy or another with __dlpack__), not {type(array).__name__}")


def _numpy(array: Any) -> Described:
    name = array.dtype.name
    if name not in NUMBERS or not array.dtype.isnative:
        raise TypeError(f"elements of dtype {array.dtype}: schedc's types are {', '.join(NUMBERS)}")
    size = array.dtype.itemsize
    if any(step % size for step in array.strides):
        raise TypeError("strides that are no multiples of an element")
    address, readonly = array.__array_interface__["data"]
    return (address, NUMBERS[name], array.shape, tuple(step // size for step in array.strides), _CPU, 0, readonly, array)


def _capsule(array: Any) -> object:
    """What is enqueued behind the capsule comes after what makes the array's data: PyTorch and CuPy launch on their current
    stream, as schedc does for them; others are told to be ready for the default stream."""
    if hasattr(array, "detach"):  # PyTorch hands out no tensor that requires a gradient
        array = array.detach()
    if array.__dlpack_device__()[0] != _CUDA:
        return _handed_out(array)
    own = type(array).__module__.split(".")[0] in ("torch", "cupy")
    return _handed_out(array, stream=_NO_WAIT if own else _DEFAULT_STREAM)


def _handed_out(array: Any, **how: int) -> object:
    try:
        return array.__dlpack__(**how)
    except BufferError as error:
        if "float8" not in str(getattr(array, "dtype", "")):
            raise
        raise TypeError(f"elements of dtype {array.dtype}: this PyTorch does not hand them out ({error}); PyTorch 2.11 does") from None
