"""Kernels and sequences with their params fixed: what is known of them, and calls on arrays."""
from __future__ import annotations

import json
import operator
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple, Union

from . import _core
from ._call import Binder, knows_stream
from ._libraries import Library
from ._views import NUMBERS, TYPES, Memory

if TYPE_CHECKING:
    from ._store import Record

Value = Union[int, float, bool, str]
Scalars = Optional[Tuple[Optional[float], ...]]  # in order of declaration; None: the default
Maker = Tuple[Callable[..., Any], Tuple[Any, ...]]  # a function that makes an array, and its arguments
POLICIES = ("early", "late", "random")  # schedc_policy
ARTIFACTS = ("cuda", "ptx", "cubin", "header")  # schedc_artifact
_BITS = {"seed": 64, "threads": 32, "sms": 32}  # of the settings that are integers
_MEMBERS = ("on", "record", "name", "tensors", "scalars")  # of a kernel, besides settings
_DIRECTIONS = {1: "in", 2: "out", 3: "inout"}
_KINDS = ("integer", "real", "truth", "element")
_BOUND = ("dim", "scalar", "tensor", "param", "absent")


@dataclass(frozen=True)
class Param:
    """A param as fixed, and the values that its declaration allows (none: any)."""
    name: str
    kind: str  # "integer", "real", "truth" or "element"
    value: Value
    domain: Tuple[Value, ...]


@dataclass(frozen=True)
class Tensor:
    """A tensor that a kernel takes; `dims` are texts: "B", "128", "B + 1"."""
    name: str
    type: str
    direction: str  # "in", "out" or "inout"
    dims: Tuple[str, ...]
    is_deterministic: bool  # always the same bits


@dataclass(frozen=True)
class Scalar:
    """A scalar argument, of type "f32" or "i32"."""
    name: str
    type: str
    has_default: bool


@dataclass(frozen=True)
class Binding:
    """What a case says of one name; `is_choice`: any one of the values, else all, in order."""
    name: str
    kind: str  # "dim", "scalar", "tensor", "param", or "absent": not there under these parameters
    is_choice: bool
    values: Tuple[str, ...]


@dataclass(frozen=True)
class Proof:
    """One statement of a certificate, the rules that it stands for, and how far it holds."""
    rules: str
    statement: str
    verdict: str


@dataclass(frozen=True)
class Certificate:
    """How far a kernel is known to be free of deadlocks and races, and under which assumptions."""
    verdict: str
    proofs: Tuple[Proof, ...]
    assumptions: Tuple[Any, ...]


class Difference(NamedTuple):
    """How far an output is from the specification, and how far it may be (schedc_error of schedc.h)."""
    tensor: str
    passed: bool
    unproven: bool
    elements: int
    total: int
    unwritten: int
    overflowed: int
    max_error: float
    max_allowed: float
    mean_error: float
    mean_allowed: float
    worst: List[int]
    worst_out: float
    worst_ref: float
    looseness: float


class Work(NamedTuple):
    """What one launch takes (schedc_work of schedc.h)."""
    said: float
    products: float
    tensor_cycles: float
    bytes: float


class Prediction(NamedTuple):
    """What the cost model says of one launch (schedc_prediction of schedc.h)."""
    ms: float
    cycles: float
    clock_mhz: float
    tensor_cycles: float
    tensor_use: float
    waves: float
    bytes: float
    bound: str


def text_of(value: Any) -> str:
    """A param's value as a schedule would have it; of a type of elements also as PyTorch and NumPy name it."""
    if isinstance(value, str):
        return TYPES[NUMBERS[value]] if value in NUMBERS else value
    if type(value).__name__.startswith("bool"):  # NumPy's, too
        return str(value).lower()
    name = getattr(value, "__name__", None) or getattr(value, "name", None) or str(value).rpartition(".")[2]
    number = NUMBERS.get(str(name))
    return str(value) if number is None else TYPES[number]


def whole(what: str, value: Any, bits: int) -> int:
    """An integer from 0 up with at most so many bits. What is none is a TypeError or ValueError."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what}: an integer is wanted, not {value!r}") from None
    if not 0 <= number < 2**bits:
        raise ValueError(f"{what}: an integer from 0 to {2**bits - 1} is wanted, not {number}")
    return number


def _value(kind: str, text: str) -> Value:
    if kind == "truth":
        return text == "true"
    return int(text) if kind == "integer" else float(text) if kind == "real" else text


class Kernel:
    """A kernel or sequence of a schedule; made by `load` or `Source.kernel`. A call runs it:

        outputs = kernel(*inputs, **by_name)

    Positional are the tensors that it reads, in order of declaration; any tensor and any scalar can be given by name. An
    output that is not given is made, by the library whose arrays the inputs are. Returned are the outputs in order of
    declaration: one as it is, more as a tuple with names.

    On "cuda" a call is enqueued on the stream that is current in that library, and does not wait. The tensors' strides are
    taken as they are. On "cpu" the interpreter runs it; `policy`, `seed`, `threads` and `sms` say how.
    """

    policy = "late"  # when asynchronous work takes place: "early", "late", "random"
    seed = 0  # of policy "random"
    threads = 0  # of the interpreter; 0: one a core
    sms = 0  # multiprocessors that persistent grids see; 0: a small default
    trust_elements = False  # launches do not check lists (`in 0 .. n`, `rising`), as of when it is loaded

    def __init__(self, handle: _core.Kernel, *, on: str, unverified: bool = False,
                 emit: Optional[Callable[[str], str]] = None, record: Optional[Record] = None) -> None:
        if on not in ("cuda", "cpu"):
            raise ValueError(f"on={on!r}: kernels run on 'cuda' or on 'cpu'")
        self._handle, self._emit, self._unverified = handle, emit, unverified
        self.on = on
        self.record = record  # whose params for tuning it has; None: of no store
        self.name = _core.name(handle)
        self.tensors = tuple(Tensor(name, type_, _DIRECTIONS[way], dims, fixed)
                             for name, type_, way, dims, fixed in _core.tensors(handle))
        self.scalars = tuple(Scalar(*one) for one in _core.scalars(handle))
        self._binder = Binder(self.name, self.tensors, self.scalars, self._shape, self._why_absent)
        self._loaded: Dict[int, _core.Loaded] = {}
        self._rooms: Dict[object, int] = {}

    if not TYPE_CHECKING:  # to a type checker it would allow every name
        def __setattr__(self, name: str, value: Any) -> None:
            """Settings are checked at once. A name that is none of a kernel's is refused: as a misspelt one it would do nothing."""
            if name == "policy" and value not in POLICIES:
                raise ValueError(f"policy={value!r}: it is one of {', '.join(map(repr, POLICIES))}")
            if name in _BITS:
                value = whole(name, value, _BITS[name])
            elif type(self) is Kernel and not (name.startswith("_") or name in _MEMBERS or hasattr(Kernel, name)):
                raise AttributeError(f"a kernel has no '{name}': what can be set are policy, seed, threads, sms and trust_elements")
            super().__setattr__(name, value)

    # ---- what is known of it

    @property
    def params(self) -> Dict[str, Param]:
        """By name, in order of declaration."""
        return {name: Param(name, _KINDS[kind], _value(_KINDS[kind], value), tuple(_value(_KINDS[kind], v) for v in domain))
                for name, kind, value, domain, _, _ in _core.params(self._handle)}

    @property
    def dims(self) -> Tuple[str, ...]:
        """The dimensions that tensors' shapes bind."""
        return tuple(_core.dims(self._handle))

    @property
    def cases(self) -> Dict[str, Tuple[Binding, ...]]:
        """What each case of the kernel binds."""
        return {name: tuple(Binding(n, _BOUND[kind], choice, values) for n, kind, choice, values in bound)
                for name, bound in _core.cases(self._handle)}

    @property
    def is_deterministic(self) -> bool:
        """Does every run give the same bits?"""
        return _core.is_deterministic(self._handle)

    @property
    def certificates(self) -> Dict[str, Certificate]:
        """Of the kernel, or of each kernel of a sequence, by name."""
        found = {}
        for kernel in self.describe():
            if kernel["kind"] == "sequence":
                continue
            said = kernel["certificate"]
            proofs = tuple(Proof(p["rules"], p["statement"], p["verdict"]) for p in said["proofs"])
            found[kernel["name"]] = Certificate(said["verdict"], proofs, tuple(said["assumptions"]))
        return found

    def describe(self, **dims: int) -> List[Dict[str, Any]]:
        """What the compiler worked out, as `schedc info --format json` has it: an entry for each
        kernel, before them one for the sequence."""
        said: List[Dict[str, Any]] = json.loads(_core.describe(self._handle, tuple(dims.items()), True))
        return said

    def verify(self) -> str:
        """Proves that no role waits for ever and that no accesses race, for every trip count: the verdict in words. Raises
        ScheduleError with a witness where it is not so. (A build does so, too.)"""
        return _core.verify(self._handle, self._unverified)

    def emit(self, stage: str) -> str:
        """What the compiler knows after a stage ("lower", "place", "cuda", …), as `schedc check --emit=STAGE` prints it."""
        if self._emit is None:
            raise ValueError(f"{self.name} is what a sequence is given: it has no source of its own")
        stages = _core.stages()
        if stage not in stages:
            raise ValueError(f"{stage!r} is none of the stages, which are {', '.join(stages)}")
        return self._emit(stage)

    def build(self, artifact: str = "cubin", *, lenient: bool = False, name: Optional[str] = None) -> bytes:
        """CUDA C ("cuda"), "ptx", machine code ("cubin") or a C header ("header"). All but CUDA C need NVRTC."""
        if artifact not in ARTIFACTS:
            raise ValueError(f"{artifact!r} is none of {', '.join(ARTIFACTS)}")
        return _core.build(self._handle, ARTIFACTS.index(artifact), lenient, name, self._unverified)

    def given(self) -> Optional["Kernel"]:
        """What a sequence is `given`: it makes those inputs that a caller does not bring. None: nothing."""
        handle = _core.given(self._handle)
        if handle is None:
            return None
        kernel = Kernel(handle, on=self.on)
        kernel._of = self  # type: ignore[attr-defined]  # which must outlive it
        return kernel

    def _why_absent(self, name: str) -> Optional[str]:
        """The guard that leaves a tensor, scalar or dimension out. None: there is none such."""
        return _core.why_absent(self._handle, name)

    def _check_dims(self, dims: Mapping[str, Any], also: Iterable[str] = (), missing: Optional[Iterable[str]] = None) -> None:
        """Of dimensions by name: each is one of the kernel's, or one of `also`, and none is missing (None: all others are)."""
        known = self.dims
        wrong = [self._why_absent(name) or f"{self.name} has no dimension {name}" for name in dims if name not in (*known, *also)]
        wrong += [f"{name} is missing" for name in (known if missing is None else missing) if name not in dims]
        if wrong:
            raise ValueError(f"dims: {', and '.join(wrong)}; the dimensions of {self.name} are {', '.join(known) or 'none'}")
        for name, value in dims.items():
            whole(f"dims: {name}", value, 53)

    def shape(self, tensor: str, **dims: int) -> Tuple[int, ...]:
        """The shape of a tensor under some dimensions, and scalars of i32 that extents are made of."""
        index = next((i for i, t in enumerate(self.tensors) if t.name == tensor), None)
        if index is None:
            raise KeyError(self._why_absent(tensor) or f"{self.name} has no tensor {tensor}")
        shape = self._shape(index, dims)
        if shape is None:
            words = re.findall(r"\w+", " ".join(self.tensors[index].dims))
            names = (*self.dims, *(s.name for s in self.scalars))
            missing = ", ".join(d for d in names if d in words and d not in dims)
            why = f"{missing} are not" if missing else "an extent is negative"
            raise ValueError(f"the shape of {tensor} does not follow from the dimensions given: {why}")
        return shape

    def _shape(self, index: int, dims: Mapping[str, int]) -> Optional[Tuple[int, ...]]:
        return _core.shape(self._handle, index, tuple(dims.items()))

    # ---- calls

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        call = self._binder.bind(arrays, named)
        self.run(call.tensors, call.scalars, call.key, call.library)
        return call.result()

    def run(self, tensors: Tuple[Any, ...], scalars: Scalars, key: object, library: Library) -> None:
        """A call with all tensors and scalars given in order of declaration, for which `key` has all shapes."""
        if self.on == "cpu":
            _core.run_cpu(self._handle, tensors, scalars, POLICIES.index(self.policy), self.seed, self.threads, self.sms, 0)
            return
        device, loaded = self._there(tensors, library)
        size = self._room(loaded, key, tensors, scalars)
        self._enqueue(loaded, device, size, library, knows_stream(tensors), tensors, scalars)

    def prepared(self, tensors: Tuple[Any, ...], scalars: Scalars, library: Library, here: Optional[Tuple[Maker, ...]],
                 anywhere: Tuple[Maker, ...], room: Callable[[int], Tuple[Optional[Maker], Maker]]) -> _core.Prepared:
        """For `_core.call`: calls with these scalars on tensors like these, inputs first, of the same types and shapes and on
        the same device. here: what makes the outputs on the device that is current, if that is faster than what makes them
        anywhere; room: the same for so many bytes of workspace. Not to be called once the kernel is unloaded."""
        if self.on == "cpu":
            return None, lambda tensors, scalars: self.run(tensors, scalars, None, library), None, anywhere, False, 0
        device, loaded = self._there(tensors, library)
        size, knows = _core.workspace(loaded, tensors, scalars), knows_stream(tensors)
        if not knows or library.waits:
            run = partial(self._enqueue, loaded, device, size, library, knows)
            return None, run, None, anywhere, False, 0
        if size:
            quick, usual = room(size)
            here, anywhere = (*here, quick) if here and quick else None, (*anywhere, usual)
        return loaded, None, here, anywhere, size > 0, size

    def _there(self, tensors: Tuple[Any, ...], library: Library) -> Tuple[int, _core.Loaded]:
        """The device of the tensors, and what is loaded there."""
        device = library.device(tensors[0]) if tensors else 0
        if device is None:
            raise TypeError(f"{self.name} was loaded for CUDA, and the tensors are in host memory: load(…, on='cpu')")
        return device, self._loaded.get(device) or self.load(device)

    @staticmethod
    def _enqueue(loaded: _core.Loaded, device: int, size: int, library: Library, knows_stream: bool,
                 tensors: Tuple[Any, ...], scalars: Scalars) -> None:
        """A launch in a workspace of that size, on the stream that is current in the library."""
        keep, address = library.room(size, device) if size else (None, None)
        stream = None if knows_stream else library.stream(device)
        _core.launch(loaded, tensors, scalars, address, size, stream)
        if library.waits:
            _core.wait(loaded, stream or 0)
        del keep  # its library gives memory that is freed now to nobody before what is on the stream has ended

    def _room(self, loaded: _core.Loaded, key: object, tensors: Tuple[Any, ...], scalars: Scalars) -> int:
        """Bytes of workspace, remembered by shapes and scalars. (A launch refuses a workspace that is too small.)"""
        key = key, scalars
        size = self._rooms.get(key)
        if size is None:
            if len(self._rooms) >= 4096:
                self._rooms.clear()
            size = self._rooms[key] = _core.workspace(loaded, tensors, scalars)
        return size

    def load(self, device: int = 0, *, lenient: bool = False, debug_waits: bool = False, cubin: Optional[bytes] = None) -> Any:
        """Builds the kernel, or takes it from the cache, and loads it on a CUDA device. The first call there does so; to be
        called before a stream is captured. What it returns is for `launch`.

        lenient: spills and serialized products are warnings. debug_waits: waits are bounded, see `check_waits`.
        A call looks at lists of which the schedule says what the elements are: a small kernel goes in front (some 3 µs). If an
        element is not so, the kernel does not run, and whoever waits for the GPU gets CUDA error 719; the context is lost.
        `check_elements`, called before, names the element. `trust_elements`, set before the kernel is loaded, leaves it out.
        cubin: its machine code, as `build` makes it: then neither NVRTC nor the cache is asked for."""
        loaded = self._loaded[device] = _core.load(self._handle, device, lenient, debug_waits, self.trust_elements, cubin,
                                                   self._unverified)
        return loaded

    def launch(self, tensors: Tuple[Any, ...], scalars: Scalars = None, *, device: int = 0,
               stream: Optional[int] = None, workspace: Optional[int] = None, workspace_bytes: int = 0) -> None:
        """Enqueues a launch with everything given: all tensors and all scalars in order of declaration (None: the default),
        the handle of a stream (None: the current one of the library whose tensors these are), the address of a workspace of
        `workspace_size` bytes."""
        loaded = self._loaded.get(device) or self.load(device)
        _core.launch(loaded, tensors, scalars, workspace, workspace_bytes, stream)

    def workspace_size(self, tensors: Tuple[Any, ...], scalars: Scalars = None, *,
                       device: int = 0) -> int:
        """Bytes of workspace that `launch` needs for tensors of these shapes."""
        return _core.workspace(self._loaded.get(device) or self.load(device), tensors, scalars)

    def check_elements(self, *arrays: Any, **named: Any) -> None:
        """Raises ScheduleError if elements of inputs are not what the schedule says of them (`in 0 .. n`, `rising`), on which its
        proofs rely: the report names tensor, place and element. Arguments are those of a call. A call on a GPU looks, too, but
        ends in a CUDA error that names nothing (`load`); this waits for the stream, and copies these inputs to host memory. On
        the CPU every call does this."""
        call = self._binder.bind(arrays, named)
        if self.on == "cuda":
            device, loaded = self._there(call.tensors, call.library)
            stream = call.library.stream(device) or 0
            _core.wait(loaded, stream)
            _core.check_elements(loaded, call.tensors, call.scalars, stream)

    def check_waits(self, device: int = 0) -> None:
        """Of a kernel loaded with `debug_waits`, once its launches have ended: raises FaultError if a wait took more than two
        seconds."""
        _core.check_waits(self._loaded[device])

    def unload(self) -> None:
        """Waits for the devices and frees what is loaded on them. What is not unloaded stays until the process ends."""
        while self._loaded:
            _core.unload(self._loaded.popitem()[1])

    # ---- the specification

    def draw(self, *arrays: Any, kind: str = "normal", seed: int = 0, **named: Any) -> None:
        """Fills arrays in host memory, which are all tensors of the kernel: inputs of floating-point numbers as `schedc run
        --inputs KIND --seed N` draws them, and outputs with NaN. Inputs of integers keep what they hold."""
        call = self._binder.bind(arrays, named, make=False)
        for index, tensor in enumerate(self.tensors):
            if tensor.direction == "out" or tensor.type != "i32":
                self._draw(call.tensors, index, kind, seed)

    def _draw(self, tensors: Tuple[Any, ...], index: int, kind: str, seed: int) -> None:
        drawn = None if self.tensors[index].direction == "out" else kind
        _core.draw(self._handle, tensors, index, drawn, seed * 1000 + index)

    def compare(self, *arrays: Any, before: Optional[Mapping[str, Any]] = None, places: int = 0, operations: int = 0,
                **named: Any) -> List[Difference]:
        """Evaluates the specification in float64 on arrays in host memory, and compares every output. All tensors are given,
        outputs by name. before: the inout tensors as they were before the run. places, operations: at most so many (0: all);
        then places are drawn, always the same."""
        call = self._binder.bind(arrays, named, make=False)
        earlier = None if before is None else tuple(before.get(t.name, a) for t, a in zip(self.tensors, call.tensors))
        return [Difference(*one) for one in
                _core.compare(self._handle, call.tensors, call.scalars, earlier, places, operations)]

    def work(self, *arrays: Any, **named: Any) -> Work:
        """What one launch on such tensors in host memory takes; nothing runs."""
        call = self._binder.bind(arrays, named)
        return Work(*_core.work(self._handle, call.tensors, call.scalars))

    def predict(self, **named: Union[int, float]) -> Prediction:
        """What a launch for these dimensions and scalars would take on an H200, by the cost model. Nothing runs, and no GPU
        is needed; but a kernel whose loops ask for elements of its inputs is refused."""
        scalars = tuple(named.get(s.name) for s in self.scalars)
        of_scalars = {s.name for s in self.scalars}
        self._check_dims({name: value for name, value in named.items() if name not in of_scalars}, missing=())
        reals = {s.name for s in self.scalars if s.type != "i32"}
        dims = {name: int(value) for name, value in named.items() if name not in reals}
        shaped = tuple(Memory(0, t.type, self.shape(t.name, **dims)) for t in self.tensors)
        return Prediction(*_core.predict(self._handle, shaped, scalars))

    def __repr__(self) -> str:
        params = ", ".join(f"{p.name}={text_of(p.value)}" for p in self.params.values())
        return f"<schedc.Kernel {self.name}({params}) on {self.on}>"
