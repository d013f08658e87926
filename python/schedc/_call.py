"""The arguments of a call, put in the order that the library wants; and outputs made where none are given."""
from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ._libraries import Library, library_of

if TYPE_CHECKING:
    from ._kernel import Scalar, Tensor

_EXCHANGE = "__dlpack_c_exchange_api__"


def knows_stream(tensors: Tuple[Any, ...]) -> bool:
    """Does an array's type tell the extension module the current stream?"""
    for tensor in tensors:
        if hasattr(type(tensor), _EXCHANGE):
            return True
    return False


class Call:
    """All tensors and scalars of one call."""
    __slots__ = ("tensors", "scalars", "library", "key", "_binder")

    def __init__(self, binder: "Binder", tensors: Tuple[Any, ...], scalars: Optional[Tuple[Optional[float], ...]],
                 library: Library, key: object) -> None:
        self._binder, self.tensors, self.scalars, self.library, self.key = binder, tensors, scalars, library, key

    def result(self) -> Any:
        """The outputs."""
        return self._binder.result(self.tensors)


class Binder:
    """How arguments go to a kernel's tensors and scalars."""

    def __init__(self, name: str, tensors: Sequence["Tensor"], scalars: Sequence["Scalar"],
                 shape: Callable[[int, Mapping[str, int]], Optional[Tuple[int, ...]]],
                 why_absent: Callable[[str], Optional[str]]) -> None:
        self.name, self.tensors, self.scalars, self._shape, self._why_absent = name, tensors, scalars, shape, why_absent
        self._read = [i for i, t in enumerate(tensors) if t.direction != "out"]
        self._written = [i for i, t in enumerate(tensors) if t.direction != "in"]
        self._place = {t.name: i for i, t in enumerate(tensors)}
        self._scalar = {s.name: i for i, s in enumerate(scalars)}
        self._whole = [(i, s.name) for i, s in enumerate(scalars) if s.type == "i32"]  # extents may be made of them
        self._asks = any(not s.has_default for s in scalars)
        self._made: Dict[object, List[Tuple[int, Callable[[], Any]]]] = {}
        self._many = namedtuple(name, [tensors[i].name for i in self._written], rename=True)  # type: ignore[misc]

    def bind(self, arrays: Sequence[Any], named: Mapping[str, Any], make: bool = True) -> Call:
        """The call, with outputs made if `make`. Raises TypeError as a function of Python would."""
        given: List[Any] = [None] * len(self.tensors)
        if len(arrays) > len(self._read):
            raise TypeError(f"{self.name} reads {len(self._read)} tensors, and {len(arrays)} are given; outputs go by name")
        for place, array in zip(self._read, arrays):
            given[place] = array
        scalars = self._by_name(given, named)
        for place in self._read if make else range(len(given)):
            if given[place] is None:
                self._refuse(given, scalars, make)
        if self._asks:
            self._refuse(given, scalars, make)
        first = next((a for a in given if a is not None), None)
        library, key = library_of(first), self._shapes_of(given)
        if make and None in key:
            self._make(given, key, scalars, library, library.device(first))
        return Call(self, tuple(given), scalars, library, key)

    def _refuse(self, given: List[Any], scalars: Optional[Tuple[Optional[float], ...]], make: bool) -> None:
        """A call that lacks something, and outputs are no such thing if they are made."""
        missing = [t.name for t, a in zip(self.tensors, given) if a is None and not (make and t.direction == "out")]
        missing += [s.name for i, s in enumerate(self.scalars) if not s.has_default and (not scalars or scalars[i] is None)]
        if missing:
            raise TypeError(f"{self.name} is called without {', '.join(missing)}")

    def _shapes_of(self, given: List[Any]) -> Tuple[Optional[Tuple[int, ...]], ...]:
        try:
            return tuple([None if array is None else tuple(array.shape) for array in given])
        except AttributeError:
            place = next(i for i, array in enumerate(given) if array is not None and not hasattr(array, "shape"))
            name, kind = self.tensors[place].name, type(given[place]).__name__
            raise TypeError(f"{name}: a tensor is wanted, not {kind}") from None

    def _by_name(self, given: List[Any], named: Mapping[str, Any]) -> Optional[Tuple[Optional[float], ...]]:
        scalars: List[Optional[float]] = []
        for name, value in named.items():
            place = self._place.get(name)
            if place is not None:
                if given[place] is not None:
                    raise TypeError(f"{self.name} is given {name} twice")
                given[place] = value
            elif name in self._scalar:
                if value is not None and not hasattr(value, "__float__"):
                    raise TypeError(f"{name}: a number is wanted, not {type(value).__name__}")
                scalars = scalars or [None] * len(self.scalars)
                scalars[self._scalar[name]] = value
            else:
                known = ", ".join([*self._place, *self._scalar])
                raise TypeError(self._why_absent(name) or f"{self.name} has no tensor or scalar {name}, only {known}")
        return tuple(scalars) or None

    def _make(self, given: List[Any], key: Tuple[Optional[Tuple[int, ...]], ...], scalars: Optional[Tuple[Optional[float], ...]],
              library: Library, device: Optional[int]) -> None:
        said = [(name, scalars[i]) for i, name in self._whole] if scalars else []
        whole = tuple([(name, int(value) if abs(value) < 2**31 else 0) for name, value in said if value is not None])
        there = key, whole, library, device
        made = self._made.get(there)
        if made is None:
            if len(self._made) >= 4096:
                self._made.clear()
            made = self._made[there] = [(place, library.maker(shape, self.tensors[place].type, device))
                                        for place, shape in self._shapes(key, dict(whole))]
        for place, make in made:
            given[place] = make()

    def _shapes(self, key: Tuple[Optional[Tuple[int, ...]], ...], dims: Dict[str, int]) -> List[Tuple[int, Tuple[int, ...]]]:
        """The shape of each tensor that is not given, from the given ones and these scalars. Whether they agree, and are such at
        all, the library checks."""
        for tensor, shape in zip(self.tensors, key):
            if shape is None:
                continue
            if len(shape) != len(tensor.dims):
                raise TypeError(f"{tensor.name} has the dimensions [{', '.join(tensor.dims)}], and one of shape {shape} is given")
            dims.update((dim, extent) for dim, extent in zip(tensor.dims, shape) if dim.isidentifier() and dim not in dims)
        made = []
        for place, given in enumerate(key):
            if given is not None:
                continue
            shape = self._shape(place, dims)
            if shape is None:
                raise TypeError(f"the shape of {self.tensors[place].name} does not follow from what is given, or is negative: give it")
            made.append((place, tuple([max(0, extent) for extent in shape])))
        return made

    def result(self, tensors: Tuple[Any, ...]) -> Any:
        """One output as it is, more as a tuple with their names."""
        if len(self._written) == 1:
            return tensors[self._written[0]]
        return self._many(*(tensors[i] for i in self._written))
