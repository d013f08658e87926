"""Sources of schedules, and kernels made of them."""
from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Optional, Tuple, Union

from . import _core
from ._kernel import Kernel, Value, text_of, whole
from ._store import AnyPath, Record, Store, opened, table

#: The folder of the schedules that are installed with the package.
SCHEDULES = Path(__file__).parent / "schedules"


@dataclass(frozen=True)
class Unit:
    """A kernel or sequence of a source, and the names of its cases."""
    name: str
    is_sequence: bool
    cases: Tuple[str, ...]


class Source:
    """The text of a `.sched` file, parsed. Immutable; any number of threads may make kernels of it."""

    def __init__(self, text: Union[str, bytes], name: str = "<text>") -> None:
        """`name` is what diagnostics call it. Raises ScheduleError."""
        self.name = name
        self._handle = _core.parse(name, text.encode() if isinstance(text, str) else text)

    @classmethod
    def read(cls, path: AnyPath) -> "Source":
        """Of a file. A name without a folder that is no file here is that of a schedule of the package's."""
        name = os.fsdecode(path)
        shipped = SCHEDULES / name
        if not os.path.dirname(name) and not os.path.exists(name):
            if not shipped.exists():
                known = ", ".join(sorted(path.name for path in SCHEDULES.glob("*.sched")))
                raise FileNotFoundError(errno.ENOENT, f"No such file, and the package has only {known}", name)
            name = str(shipped)
        with open(name, "rb") as file:
            return cls(file.read(), name)

    @property
    def units(self) -> Tuple[Unit, ...]:
        """Its kernels and sequences, in order of appearance."""
        return tuple(Unit(*one) for one in _core.units(self._handle))

    def format(self) -> str:
        """The text in canonical form, comments kept."""
        return _core.format(self._handle)

    def schedule(self, unit: Optional[str] = None) -> str:
        """The hash by which stores know the schedule of a kernel or sequence."""
        return _core.schedule(self._handle, unit)[0]

    def kernel(self, unit: Optional[str] = None, *, case: Optional[str] = None, params: Optional[Mapping[str, Value]] = None,
               on: str = "cuda", unverified: bool = False, store: Union[Store, AnyPath, None] = None,
               dims: Optional[Mapping[str, int]] = None, gpu: Optional[str] = None, **more: Value) -> Kernel:
        """A kernel or sequence with its params fixed, checked; `load` says more."""
        pairs = tuple((name, text_of(value)) for name, value in {**(params or {}), **more}.items())
        if store is not None and dims is None:
            raise ValueError("store: the dims are needed for which it is asked")
        if dims is None:
            handle, found = _core.instantiate(self._handle, unit, case, pairs, unverified), None
        else:
            named = None if store is None else opened(store, "store")
            name = _core.gpu_name(0) if gpu is None and on == "cuda" else gpu
            handle, found = self._tuned(unit, case, pairs, dims, table(name) if named is None else named, name, unverified)
        pairs += tuple(p for p in (found.tuning.items() if found else ()) if p[0] not in dict(pairs))
        kernel = Kernel(handle, on=on, unverified=unverified, record=found,
                        emit=lambda stage: _core.emit(self._handle, unit, case, pairs, stage))
        if dims is not None:
            kernel._check_dims(dims)
        return kernel

    def _tuned(self, unit: Optional[str], case: Optional[str], pairs: Tuple[Tuple[str, str], ...], dims: Mapping[str, int],
               store: Optional[Store], gpu: Optional[str], unverified: bool) -> Tuple[_core.Kernel, Optional[Record]]:
        if store is None:
            return _core.instantiate(self._handle, unit, case, pairs, unverified), None
        extents = tuple((name, whole(f"dims: {name}", extent, 53)) for name, extent in dims.items())
        handle, found = _core.instantiate_tuned(self._handle, unit, case, pairs, extents, store._handle, gpu, unverified)
        return handle, None if found is None else Record(*found)

    def __repr__(self) -> str:
        return f"<schedc.Source {self.name}: {', '.join(u.name for u in self.units)}>"


def load(path: AnyPath, unit: Optional[str] = None, *, case: Optional[str] = None,
         params: Optional[Mapping[str, Any]] = None, on: str = "cuda", unverified: bool = False,
         store: Union[Store, AnyPath, None] = None, dims: Optional[Mapping[str, int]] = None,
         gpu: Optional[str] = None, **more: Value) -> Kernel:
    """A kernel of a `.sched` file, as a function of tensors.

    path: a file, or the name of a schedule of the package's ("fa3_stale.sched").
    unit: which kernel or sequence; None: the last sequence, or else the last kernel.
    Params are given by name, `load(path, D=128, causal=True)`, or in `params`, for names that mean something here; those
    that are not given have the values of `case`, or their defaults.
    on: "cuda", or "cpu": the interpreter, on arrays in host memory.
    unverified: what is rejected because it may race or hang is a warning.
    dims: for tensors of these dimensions (all, by name), params for tuning that are not given are those of a store's record
    that fits, if there is one; `.record` says which. store: a Store, or a file that is there; None is the one that the
    variable SCHEDC_STORE names (none, if it is empty), or the table of the GPU. gpu: its name; None is the first CUDA device,
    or any on="cpu", where no table is taken.

    Raises ScheduleError with the compiler's reports; machine code is built, or taken from the cache, at the first call.

        attention = schedc.load("fa3_stale.sched", D=128, causal=True)
        o, l = attention(q, k, v, scale=0.1)
    """
    return Source.read(path).kernel(unit, case=case, params=params, on=on, unverified=unverified, store=store, dims=dims, gpu=gpu,
                                    **more)
