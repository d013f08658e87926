"""Stores of measured points: which params for tuning were best for which shapes."""
from __future__ import annotations

import errno
import math
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional, Tuple, Union

from . import _core
from ._kernel import Value, text_of, whole

#: Where a file is.
AnyPath = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
_REALS = ("cold_ms", "sustained_ms", "noise", "reference_ms")  # of a record; 0: not measured
_BITS = {"driver": 32, "nvrtc": 32, "rank": 32, "launches": 53}  # of its integers


@dataclass(frozen=True)
class Record:
    """A measured point, with the members of a line (runtime/tune/README.md), and its number in the file, from 1."""
    schedule: str
    unit: str
    problem: Mapping[str, str]
    dims: Mapping[str, int]
    gpu: str
    driver: int
    nvrtc: int
    schedc: str
    tuning: Mapping[str, str]
    status: str
    inputs: str
    cold_ms: float
    sustained_ms: float
    noise: float
    reference_ms: float
    launches: int
    rank: int
    date: str
    line: int
    measured: str = ""


class Store:
    """The records of a file, in its order; a file that is not there has none. `schedc tune --out FILE` and `schedc.tune` make
    one. Used by one thread at a time."""

    def __init__(self, path: AnyPath) -> None:
        """Raises ScheduleError if it is no store, and Error if it cannot be read."""
        self.path = os.fsdecode(path)
        self._handle = _core.store_open(self.path)

    @classmethod
    def shipped(cls, gpu: Optional[str] = None) -> Optional["Store"]:
        """The table that the package has of a GPU, by its name (None: the first CUDA device); None: it has none."""
        path = TABLES / _core.table_name(_core.gpu_name(0) if gpu is None else gpu)
        return cls(path) if path.exists() else None

    @property
    def records(self) -> Tuple[Record, ...]:
        """All of them, also those that were appended since it was opened; their line is 0."""
        return tuple(Record(*one) for one in _core.store_records(self._handle))

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __len__(self) -> int:
        return _core.store_count(self._handle)

    def __getitem__(self, index: int) -> Record:
        return self.records[index]

    def add(self, record: Record) -> None:
        """Appends a line, in one write, whatever its number was. Raises Error if the file cannot be written."""
        if not isinstance(record, Record):
            raise TypeError(f"a Record is wanted, not {type(record).__name__}")
        for name in _REALS:
            value = getattr(record, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name}={value!r}: a record has a number from 0 up there; 0 is for what was not measured")
        for name, bits in _BITS.items():
            whole(name, getattr(record, name), bits)
        for name, extent in record.dims.items():
            whole(f"dims: {name}", extent, 53)
        _core.store_append(self._handle, tuple(_pairs(value) for value in _members(record)))

    def merge(self, other: Union["Store", AnyPath]) -> int:
        """Appends the records of another store that are not here yet, and says how many. Raises FileNotFoundError if there is no
        such file."""
        here = {_content(record) for record in self}
        new = [record for record in opened(other, "merge") if _content(record) not in here]
        for record in new:
            self.add(record)
        return len(new)

    def find(self, *, schedule: str, unit: str, problem: Mapping[str, Value], dims: Mapping[str, int], gpu: Optional[str] = None,
             tuning: Optional[Mapping[str, Value]] = None) -> Optional[Record]:
        """The record that fits best, by the rule of runtime/tune/README.md. schedule: `Source.schedule()`. gpu: None is any.
        tuning: params that must have these values. (`load(…, store=…, dims=…)` does all this, and makes the kernel.)"""
        found = _core.store_find(self._handle, schedule, unit, _texts(problem), tuple(dims.items()), gpu, _texts(tuning or {}))
        return None if found is None else Record(*found)

    def __repr__(self) -> str:
        return f"<schedc.Store {self.path}: {len(self)} records>"


def _texts(params: Mapping[str, Value]) -> Tuple[Tuple[str, str], ...]:
    return tuple((name, text_of(value)) for name, value in params.items())


def _members(record: Record) -> Tuple[Any, ...]:
    """All but the number of its line."""
    return tuple(getattr(record, field.name) for field in fields(record) if field.name != "line")


def _pairs(value: Any) -> Any:
    return tuple(value.items()) if isinstance(value, Mapping) else value


def _content(record: Record) -> object:
    return tuple(frozenset(value.items()) if isinstance(value, Mapping) else value for value in _members(record))


def opened(store: Union[Store, AnyPath], what: str) -> Store:
    """A store that is read only: the file is there. `what` asks for it."""
    if isinstance(store, Store):
        return store
    name = os.fsdecode(store)
    if not os.path.exists(name):
        raise FileNotFoundError(errno.ENOENT, f"{what}: there is no such file", name)
    return Store(name)


#: The folder of the tables that are installed with the package: a store for each GPU that has one.
TABLES = Path(__file__).parent / "schedules" / "tuned"


def table(gpu: Optional[str]) -> Optional[Store]:
    """The store that is taken where none is given: the one that the variable SCHEDC_STORE names (none, if it is empty), else the
    table of the GPU of this name, else none."""
    named = os.environ.get("SCHEDC_STORE")
    if named is not None:
        return Store(named) if named else None
    return Store.shipped(gpu) if gpu else None
