"""Searches for the fastest params for tuning: on a GPU, by the cost model, or by a measure of the caller's."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy

from . import _core
from ._kernel import Kernel, Scalars, Tensor, Value, text_of, whole
from ._libraries import library_of, numpy_type
from ._report import Error, UnavailableError
from ._source import Source
from ._store import AnyPath, Store, opened
from ._views import SIZES, Memory

STRATEGIES = ("halving", "exhaustive", "model")  # schedc_strategy
_ALIGNMENT = 64
_OPERATIONS = 1_000_000_000  # of a comparison with the specification


@dataclass(frozen=True)
class Candidate:
    """A program of a search (schedc_candidate of schedc.h)."""
    params: Mapping[str, str]  # those for tuning that vary; of the default none, if the domains do not have it
    is_default: bool
    failed: Optional[str]  # why: the code of a diagnostic, "wrong" if its results were, or "failed"
    verified: bool
    rungs: int
    turns: int
    predicted_ms: float
    ms: float
    ratio: float
    spread: float


class Progress(NamedTuple):
    """Where a search is (schedc_tune_state of schedc.h)."""
    seconds: float
    done: int
    left: int
    failed: int
    known: int
    best_ms: float
    best_ratio: float
    default_ms: float
    is_final: bool
    is_verifying: bool
    params: Optional[Mapping[str, str]]  # what is measured now; None: programs are being built
    hurried: bool


class Trial(NamedTuple):
    """What a measure is asked for (schedc_trial of schedc.h)."""
    params: Mapping[str, str]
    verify: bool  # are its results right? Else: how many milliseconds does a launch take?
    ms: float  # so long should all launches take together
    rung: int
    is_final: bool
    is_reference: bool


Measure = Callable[[Kernel, Trial], Union[float, bool]]


class Tuning:
    """What a search has found."""

    def __init__(self, tuner: _core.Tuner, interrupted: bool, store: Optional[Store], make: Callable[[Candidate], Kernel]) -> None:
        self.interrupted = interrupted  # by Ctrl-C, or by `progress`
        self.store = store  # which has a line for each measurement
        self.candidates = tuple(_candidate(one) for one in _core.candidates(tuner))  # best first, what failed last
        found = _core.best(tuner)
        self.best = None if found is None else _candidate(found)  # verified, and fastest in the finals; ties go to the default
        self.points, self.legal, self.programs, self.noise, refused = _core.searched(tuner)
        self.refused: Dict[str, int] = dict(refused)  # points, by the code that refused them
        self._make = make

    def kernel(self) -> Kernel:
        """The best one, for calls."""
        if self.best is None:
            raise ValueError("the search has found nothing that is verified")
        return self._make(self.best)

    def __str__(self) -> str:
        """A table of what was measured in the finals, or else at all."""
        rows = [c for c in self.candidates if c.turns] or [c for c in self.candidates if c.rungs]
        lines = [f"{c.ms:10.4f} ms {c.ratio:7.3f}  {'default' if c.is_default else _said(c)}" for c in rows if not c.failed]
        lines += [f"{'failed':>13} {c.failed:>7}  {_said(c)}" for c in self.candidates if c.failed]
        chosen = "nothing" if self.best is None else "the default" if self.best.is_default else _said(self.best)
        return "\n".join([*lines, f"chosen: {chosen}{' (interrupted)' if self.interrupted else ''}"])


def _said(candidate: Candidate) -> str:
    return " ".join(f"{name}={value}" for name, value in candidate.params.items())


def _candidate(raw: Tuple[Any, ...]) -> Candidate:
    params, is_default, failed, code, *rest = raw
    return Candidate(dict(params), is_default, (code or "failed") if failed else None, *rest)


# ---- tensors

class _Data:
    """The tensors of a search: those that are given, and others in host memory."""

    def __init__(self, kernel: Kernel, given: Mapping[str, Any], dims: Mapping[str, int]) -> None:
        self.kernel = kernel
        self.dims = dict(dims)
        self.given = self._named(given)
        self._check_dims(())
        self.device = self._device()
        self._held: List[object] = []
        self.tensors = tuple(self._tensor(i, t) for i, t in enumerate(kernel.tensors))

    def _named(self, given: Mapping[str, Any]) -> Dict[str, Any]:
        """The given tensors, and what they say of dimensions; scalars in order of declaration."""
        names = {t.name: t for t in self.kernel.tensors}
        scalars = {s.name: i for i, s in enumerate(self.kernel.scalars)}
        values: List[Optional[float]] = [None] * len(scalars)
        for name, value in given.items():
            if name in scalars:
                values[scalars[name]] = value
            elif name in names:
                self.dims.update({d: n for d, n in zip(names[name].dims, value.shape) if d.isidentifier()})
            else:
                only = ', '.join([*names, *scalars])
                raise TypeError(self.kernel._why_absent(name) or f"{self.kernel.name} has no tensor or scalar {name}, only {only}")
        missing = [s.name for s, v in zip(self.kernel.scalars, values) if v is None and not s.has_default]
        if missing:
            raise TypeError(f"arrays: the values of {', '.join(missing)} are missing")
        self.scalars: Scalars = tuple(values) or None
        return {name: value for name, value in given.items() if name in names}

    def _check_dims(self, missing: Sequence[str]) -> None:
        """Those of the caller. Extents may be made of scalars, too."""
        known, scalars = self.kernel.dims, [s.name for s in self.kernel.scalars if s.type == "i32"]
        if any(name not in (*known, *scalars) for name in self.dims):
            missing = [name for name in known if name not in self.dims]
        self.kernel._check_dims(self.dims, scalars, missing)

    def _device(self) -> Optional[int]:
        devices = [library_of(a).device(a) for a in self.given.values()]
        return next((d for d in devices if d is not None), None)

    def _tensor(self, index: int, tensor: Tensor) -> Any:
        if tensor.name in self.given:
            return self.given[tensor.name]
        shape = _core.shape(self.kernel._handle, index, tuple(self.dims.items()))
        if shape is None:
            self._check_dims([name for name in self.kernel.dims if name not in self.dims])
            raise ValueError(f"the shape of {tensor.name} does not follow from dims and arrays")
        if tensor.direction != "out" and (self.device is not None or tensor.type == "i32"):
            raise TypeError(f"arrays: {tensor.name} is missing; tensors of integers are given, and on a GPU all inputs")
        if self.device is not None:
            library = library_of(next(iter(self.given.values())))
            return library.empty(shape, tensor.type, self.device)
        return self.memory(tensor.type, shape)

    def memory(self, type_: str, shape: Tuple[int, ...]) -> Memory:
        room = numpy.empty(int(numpy.prod(shape, dtype=numpy.int64)) * SIZES[type_] + _ALIGNMENT, numpy.uint8)
        self._held.append(room)
        return Memory(-(-room.ctypes.data // _ALIGNMENT) * _ALIGNMENT, type_, shape)

    def fill(self, kind: str, seed: int) -> None:
        """Inputs that are not given are drawn, as by `schedc run --seed`."""
        for index, tensor in enumerate(self.kernel.tensors):
            if tensor.name not in self.given and self.device is None:
                self.kernel._draw(self.tensors, index, kind, seed)

    def complete(self, device: int) -> None:
        """Makes what a sequence is `given`, from the others; what the caller gives stays."""
        maker = self.kernel.given()
        if maker is None or self.device is not None:
            return
        made = tuple(self.memory(t.type, tuple(x.shape)) if t.name in self.given and t.direction != "in" else x
                     for t, x in zip(maker.tensors, self.tensors))
        _core.run_gpu(maker._handle, made, self.scalars, device)

    def for_model(self) -> Tuple[Any, ...]:
        """For the cost model, which asks for elements of integers alone."""
        return self.tensors if self.device is None else tuple(map(_in_host_memory, self.kernel.tensors, self.tensors))


def _in_host_memory(tensor: Tensor, array: Any) -> Any:
    if tensor.type == "i32" and hasattr(array, "cpu"):
        return array.cpu()
    return Memory(0, tensor.type, tuple(array.shape))


# ---- measures

def _by_model(data: _Data, seed: int) -> Measure:
    """The cost model's time; what is verified is interpreted at the dimensions of the kernel's first case. That there is none is
    told before anything is measured."""
    _of_case(data.kernel)

    def measure(kernel: Kernel, trial: Trial) -> Union[float, bool]:
        if not trial.verify:
            ms = _core.predict(kernel._handle, data.tensors, data.scalars)[0]
            if not ms > 0:
                at = ", ".join(f"{name}={extent}" for name, extent in data.dims.items())
                raise ValueError(f"dims: with {at} the cost model has no time for {kernel.name}: there is nothing to compute")
            return ms
        small = _Data(kernel, *_of_case(kernel))
        small.fill("normal", seed)
        _core.run_cpu(kernel._handle, small.tensors, small.scalars, 0, seed, 0, 0, 0)
        return all(one[1] for one in _core.compare(kernel._handle, small.tensors, small.scalars, None, 0, _OPERATIONS))
    return measure


def _of_case(kernel: Kernel) -> Tuple[Dict[str, Any], Dict[str, int]]:
    """Tensors and scalars, and dimensions, of the first case: of each choice the first value."""
    if not kernel.cases or kernel.given() is not None:
        raise ValueError(f"{kernel.name} has no case at which the interpreter could verify it: give a measure")
    bound = next(iter(kernel.cases.values()))
    dims = {b.name: int(b.values[0]) for b in bound if b.kind == "dim"}
    arrays: Dict[str, Any] = {b.name: float(b.values[0]) for b in bound if b.kind == "scalar"}
    types = {t.name: t.type for t in kernel.tensors}
    for b in bound:
        if b.kind == "tensor":
            arrays[b.name] = _listed([float(v) for v in b.values], types[b.name], kernel.shape(b.name, **dims))
    return arrays, dims


def _listed(values: List[float], type_: str, shape: Tuple[int, ...]) -> Any:
    """The elements that a case lists, the last dimension fastest; if there are more, they are like the last."""
    count = int(numpy.prod(shape, dtype=numpy.int64))
    return numpy.array(values[:count] + values[-1:] * (count - len(values)), numpy_type(type_)).reshape(shape)


def _asked(measure: Measure, make: Callable[[Mapping[str, str]], Kernel]) -> Callable[..., Tuple[bool, float, Optional[str]]]:
    """A measure as the extension module calls it. What the library finds wrong with a program is an outcome."""
    def ask(params: Tuple[Tuple[str, str], ...], verify: int, ms: float, rung: int, is_final: int,
            is_reference: int) -> Tuple[bool, float, Optional[str]]:
        trial = Trial(dict(params), bool(verify), ms, rung, bool(is_final), bool(is_reference))
        try:
            said = measure(make(trial.params), trial)
        except UnavailableError:
            raise
        except Error as error:
            return False, 0.0, error.diagnostics[0].code if error.diagnostics else error.status
        if verify:
            if not isinstance(said, (bool, numpy.bool_)):
                raise TypeError(f"measure: for a trial with verify True or False is wanted (are the results right?), not {said!r}")
            return bool(said), 0.0, None if said else "wrong"
        return True, _milliseconds(said), None
    return ask


def _milliseconds(said: Any) -> float:
    """A measure's result; a truth is none."""
    if isinstance(said, (bool, numpy.bool_)) or not hasattr(said, "__float__"):
        raise TypeError(f"measure: milliseconds are wanted, a number above 0, not {said!r}")
    ms = float(said)
    if not 0 < ms < float("inf"):
        raise ValueError(f"measure: milliseconds are wanted, a number above 0, not {ms}")
    return ms


def _shown(progress: Optional[Callable[[Progress], Any]]) -> Optional[Callable[..., Any]]:
    """Likewise."""
    if progress is None:
        return None
    told = progress

    def show(seconds: float, done: int, left: int, failed: int, known: int, best_ms: float, best_ratio: float, default_ms: float,
             is_final: int, is_verifying: int, params: Optional[Tuple[Tuple[str, str], ...]], hurried: int) -> Any:
        return told(Progress(seconds, done, left, failed, known, best_ms, best_ratio, default_ms, bool(is_final), bool(is_verifying),
                             None if params is None else dict(params), bool(hurried)))
    return show


# ---- the search

def _check_options(on: str, strategy: str, seconds: float, brief_ms: float, final_ms: float, **counts: int) -> None:
    if on not in ("cuda", "cpu"):
        raise ValueError(f"on={on!r}: a search is on 'cuda', where the GPU measures, or on 'cpu', where the cost model predicts")
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy={strategy!r}: it is one of {', '.join(map(repr, STRATEGIES))}")
    if not seconds >= 0:
        raise ValueError(f"seconds={seconds!r}: a number above 0 is wanted, or 0: until the search is done")
    for name, ms in (("brief_ms", brief_ms), ("final_ms", final_ms)):
        if not ms > 0:
            raise ValueError(f"{name}={ms!r}: a number above 0 is wanted")
    for name, count in counts.items():
        whole(name, count, 32)


def tune(path: Union[Source, AnyPath], unit: Optional[str] = None, *, dims: Optional[Mapping[str, int]] = None,
         arrays: Optional[Mapping[str, Any]] = None, case: Optional[str] = None, params: Optional[Mapping[str, Value]] = None,
         on: str = "cuda", device: int = 0, seconds: float = 0, store: Union[Store, AnyPath, None] = None,
         resume: bool = False, winners: Union[Store, AnyPath, None] = None, strategy: str = "halving",
         top: int = 8, turns: int = 2, brief_ms: float = 20, final_ms: float = 1150, jobs: int = 0,
         inputs: Sequence[str] = ("normal", "outliers", "ramp"), measured: int = 1, seed: int = 0,
         measure: Optional[Measure] = None, progress: Optional[Callable[[Progress], Any]] = None, **more: Value) -> Tuning:
    """Searches for the fastest params for tuning of a kernel or sequence, at one shape.

    path, unit, case, params and more: as for `load`; params that are given are fixed, the others for tuning go through their
    domains. dims: all dimensions, by name, but those that `arrays` have. arrays: tensors and scalars by name, in host memory or
    all inputs on one GPU; in their place inputs are drawn, of the first of the kinds `inputs` (as `schedc run --help` lists
    them).
    on: "cuda": programs are built in `jobs` threads (0: one a core), measured on the GPU `device`, or that of the arrays, and
    compared with the specification on all `inputs`. "cpu": the cost model's times; finalists are interpreted at the kernel's
    first case. measure: a function of the caller's in place of both, of a kernel and a Trial. If the trial has `verify`, it
    returns whether the results are right (True or False), else the milliseconds of a launch (a number above 0).
    measured: on a GPU, programs are measured on the first so many of `inputs`, and a time is the mean of theirs; what `arrays`
    hold stands for the first kind.
    seconds: about so long; 0: until it is done. store: gets a line for each measurement of a search on a GPU without `measure`;
    resume: what it has is not measured again, but for the finals. winners: what won in that store, before the schedule was
    changed or at other shapes, is measured first. strategy: "halving", "exhaustive" or "model". top: how many get into the
    finals, besides the default, with `turns` of `final_ms` each; brief_ms: of the first rung.
    progress: called with a Progress before each trial; a true result ends the search, and so does Ctrl-C: what was found until
    then is returned.

        found = schedc.tune("fa3_stale.sched", dims={"B": 8, "M": 2048, "N": 2048, "H": 16, "G": 16}, D=128, seconds=60)
        print(found)
        attention = found.kernel()
    """
    _check_options(on, strategy, seconds, brief_ms, final_ms, top=top, turns=turns, jobs=jobs)
    source = path if isinstance(path, Source) else Source.read(path)
    fixed = {**(params or {}), **more}
    space = _core.space(source._handle, unit, case, tuple((name, text_of(value)) for name, value in fixed.items()))
    data = _Data(Kernel(_core.some_kernel(space), on="cpu"), arrays or {}, dims or {})
    if on == "cpu" and measure is None:
        measure = _by_model(data, seed)
    if measure is not None and store is not None:
        raise ValueError("a store has what the library measures on a GPU: store= goes with neither measure= nor on='cpu'")
    won = None if winners is None else opened(winners, "winners")
    kept = store if store is None or isinstance(store, Store) else Store(store)
    tuner = _core.tuner(space, data.kernel._handle, data.for_model(), data.scalars, STRATEGIES.index(strategy), top, turns, brief_ms,
                        final_ms, None if won is None else won._handle)

    def make(tuned: Mapping[str, str], where: str = on) -> Kernel:
        return source.kernel(unit, case=case, params={**fixed, **tuned}, on=where)
    if measure is not None:
        interrupted = _core.search_by(tuner, _asked(measure, make), _shown(progress), seconds)
    else:
        interrupted = _on_gpu(tuner, data, device, inputs, measured, seed, jobs, kept, resume, _shown(progress), seconds)
    return Tuning(tuner, interrupted, kept, lambda found: make(found.params))


def _on_gpu(tuner: _core.Tuner, data: _Data, device: int, inputs: Sequence[str], measured: int, seed: int, jobs: int,
            store: Optional[Store], resume: bool, progress: Optional[Callable[..., Any]], seconds: float) -> bool:
    if not 1 <= whole("measured", measured, 32) <= len(inputs):
        raise ValueError(f"measured={measured}: a number from 1 to {len(inputs)} is wanted, of kinds in `inputs`")
    data.fill(inputs[0], seed)
    data.complete(device)
    first = next((a for a in data.tensors if data.device is not None), None)
    stream = 0 if first is None else library_of(first).stream(data.device or 0)
    drawn = inputs[0] if all(t.type == "i32" or t.direction == "out" or t.name not in data.given for t in data.kernel.tensors) else None
    return _core.search(tuner, data.kernel._handle, data.tensors, data.scalars, device, stream, jobs, drawn, ",".join(inputs[1:]),
                        measured, seed, None if store is None else store._handle, resume, progress, seconds)
