"""libschedc from Python as it is, through ctypes: what tests of the binary interface need of include/schedc.h. Programs,
and the scripts of bench, use the package (python/README.md), whose calls the C compiler checks.
"""
import ctypes
import os

MAX_RANK = 6
TYPES = ["f32", "f16", "bf16", "e4m3", "e5m2", "i32"]  # schedc_type
OUT = 2  # SCHEDC_OUT
_size, _text, _at = ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p


class Tensor(ctypes.Structure):
    _fields_ = [("name", _text), ("data", _at), ("type", ctypes.c_int), ("rank", _size),
                ("shape", ctypes.c_int64 * MAX_RANK), ("strides", ctypes.c_int64 * MAX_RANK)]


class Scalar(ctypes.Structure):
    _fields_ = [("name", _text), ("value", ctypes.c_double)]


class _Param(ctypes.Structure):
    _fields_ = [("name", _text), ("value", _text)]


class _Dim(ctypes.Structure):
    _fields_ = [("name", _text), ("value", ctypes.c_int64)]


class _Diagnostic(ctypes.Structure):
    _fields_ = [("size", _size), ("severity", ctypes.c_int), ("code", _text), ("file", _text),
                ("where", ctypes.c_uint32 * 6), ("text", _text), ("help", _text), ("notes", _at), ("note_count", _size),
                ("rendered", _text)]


_Sink = ctypes.CFUNCTYPE(None, _at, ctypes.POINTER(_Diagnostic))


class _Options(ctypes.Structure):
    _fields_ = [("size", _size), ("allocator", _at), ("sink", _Sink), ("sink_user", _at)]


class _TensorInfo(ctypes.Structure):
    _fields_ = [("size", _size), ("name", _text), ("type", ctypes.c_int), ("direction", ctypes.c_int), ("rank", _size),
                ("dims", _text * MAX_RANK)]


class _ParamInfo(ctypes.Structure):
    _fields_ = [("size", _size), ("name", _text), ("type", ctypes.c_int), ("value", _text), ("domain_count", _size),
                ("domain", _at), ("least", ctypes.c_double), ("most", ctypes.c_double)]


class _LoadOptions(ctypes.Structure):
    _fields_ = [("size", _size), ("build", _at)]


class _CompareOptions(ctypes.Structure):
    _fields_ = [("size", _size), ("threads", ctypes.c_uint), ("places", ctypes.c_uint64),
                ("operations", ctypes.c_uint64), ("before", _at), ("before_count", _size)]


class Prediction(ctypes.Structure):
    _fields_ = [("size", _size)] + [(name, ctypes.c_double) for name in (
        "ms", "cycles", "clock_mhz", "tensor_cycles", "tensor_use", "waves", "bytes")] + [("bound", _text)]


class _Times(ctypes.Structure):
    _fields_ = [("size", _size)] + [(name, ctypes.c_double) for name in ("cold", "sustained", "least", "most", "clock", "power")]


class _GpuJob(ctypes.Structure):
    _fields_ = [("size", _size), ("kernel", _at), ("tensors", _at), ("tensor_count", _size), ("scalars", _at),
                ("scalar_count", _size), ("times", _Times), ("differing", ctypes.c_uint64), ("cubin", _text),
                ("cubin_bytes", _size)]


class GpuInfo(ctypes.Structure):
    _fields_ = [("size", _size), ("name", _text), ("multiprocessors", ctypes.c_uint), ("driver_version", ctypes.c_uint),
                ("device", ctypes.c_int), ("capability_major", ctypes.c_uint), ("capability_minor", ctypes.c_uint),
                ("memory_bytes", ctypes.c_uint64), ("l2_bytes", ctypes.c_uint64), ("clock_mhz", ctypes.c_double),
                ("pci", _text), ("uuid", _text)]


class Error(ctypes.Structure):
    """How far an output is from the specification."""
    _fields_ = [("size", _size), ("tensor", _text), ("elements", ctypes.c_uint64), ("unwritten", ctypes.c_uint64),
                ("max_error", ctypes.c_double), ("max_allowed", ctypes.c_double), ("mean_error", ctypes.c_double),
                ("mean_allowed", ctypes.c_double), ("worst", ctypes.c_int64 * MAX_RANK), ("worst_out", ctypes.c_double),
                ("worst_ref", ctypes.c_double), ("pass_", ctypes.c_int), ("total", ctypes.c_uint64),
                ("overflowed", ctypes.c_uint64), ("may_overflow", ctypes.c_int), ("unproven", ctypes.c_int),
                ("looseness", ctypes.c_double)]


class Failed(Exception):
    """What libschedc reported."""


def find_library():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for path in (os.environ.get("SCHEDC_LIBRARY"), os.path.join(here, "build/release/libschedc.so"),
                 os.path.join(here, "build/libschedc.so")):
        if path and os.path.exists(path):
            return path
    return "libschedc.so.0.2"


class Library:
    def __init__(self, path=None):
        self.so = ctypes.CDLL(path or find_library())
        for name, result in (("schedc_status_name", _text), ("schedc_kernel_name", _text), ("schedc_tensor_count", _size),
                             ("schedc_scalar_count", _size), ("schedc_output_count", _size), ("schedc_version", _text)):
            getattr(self.so, name).restype = result
        for name in ("schedc_close", "schedc_source_free", "schedc_kernel_free", "schedc_unload", "schedc_gpu_free"):
            getattr(self.so, name).restype = None
            getattr(self.so, name).argtypes = [_at]
        self.reports = []
        self._sink = _Sink(lambda _, d: self.reports.append(d.contents.rendered.decode()))
        options = _Options(ctypes.sizeof(_Options), None, self._sink, None)
        self.context = _at()
        self.check(self.so.schedc_open(ctypes.byref(self.context), ctypes.byref(options)))

    def check(self, status):
        if status:
            reports, self.reports = "".join(self.reports), []
            raise Failed(reports or self.so.schedc_status_name(status).decode())

    @property
    def version(self):
        return self.so.schedc_version().decode()


class Gpu:
    """A device, by its number, for tensors in host memory."""

    def __init__(self, library, device=0):
        self.library, self.so, self.handle = library, library.so, _at()
        library.check(self.so.schedc_gpu_new(ctypes.byref(self.handle), library.context, ctypes.c_int(device)))

    def info(self):
        info = GpuInfo(ctypes.sizeof(GpuInfo))
        self.library.check(self.so.schedc_gpu_get_info(self.handle, ctypes.byref(info)))
        return info

    def run(self, kernel, tensors, cubin=None):
        """Scalars have their defaults. cubin: its machine code, instead of building it."""
        job = _GpuJob(ctypes.sizeof(_GpuJob), kernel.handle, ctypes.addressof(tensors), len(kernel.tensors))
        job.times.size = ctypes.sizeof(_Times)
        job.cubin, job.cubin_bytes = cubin, len(cubin or b"")
        self.library.check(self.so.schedc_gpu_run(self.handle, ctypes.byref(job), _size(1), None))

    def close(self):
        self.so.schedc_gpu_free(self.handle)
        self.handle = _at()


def _named(kind, values):
    pairs = [(str(name).encode(), value) for name, value in values.items()]
    return (kind * max(1, len(pairs)))(*[kind(name, value) for name, value in pairs]), len(pairs)


def _value(v):
    return ("true" if v else "false") if isinstance(v, bool) else str(v)


def contiguous(shape):
    """The strides of rows one after the other."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(1, n)
    return strides[::-1]


def _scalars(values):
    """Values in the kernel's order (NaN: the default), as an array and its length."""
    values = values or ()
    return (Scalar * max(1, len(values)))(*[Scalar(None, value) for value in values]), _size(len(values))


class Kernel:
    """A kernel or sequence under some params."""

    def __init__(self, library, path, unit=None, params=None):
        self.library, self.so, self.path = library, library.so, path
        with open(path, "rb") as file:
            text = file.read()
        source, self.handle, self.loaded = _at(), _at(), _at()
        self.so.schedc_parse.argtypes = [_at, _at, _text, _text, _size]
        library.check(self.so.schedc_parse(ctypes.byref(source), library.context, path.encode(), text, len(text)))
        given, n = _named(_Param, {k: _value(v).encode() for k, v in (params or {}).items()})
        try:
            self.so.schedc_instantiate.argtypes = [_at, _at, _at, _text, _text, _at, _size]
            library.check(self.so.schedc_instantiate(ctypes.byref(self.handle), library.context, source,
                                                     unit and unit.encode(), None, given, n))
        finally:
            self.so.schedc_source_free(source)
        self.name = self.so.schedc_kernel_name(self.handle).decode()
        self.tensors = [self._tensor(i) for i in range(self.so.schedc_tensor_count(self.handle))]

    def _tensor(self, i):
        info = _TensorInfo(ctypes.sizeof(_TensorInfo))
        self.library.check(self.so.schedc_tensor_at(self.handle, _size(i), ctypes.byref(info)))
        return info.name.decode(), TYPES[info.type], info.direction, info.rank

    def params(self):
        info, all_ = _ParamInfo(ctypes.sizeof(_ParamInfo)), {}
        while self.so.schedc_param_at(self.handle, _size(len(all_)), ctypes.byref(info)) == 0:
            all_[info.name.decode()] = info.value.decode()
        return all_

    def shape(self, i, dims):
        given, n = _named(_Dim, dims)
        shape = (ctypes.c_int64 * MAX_RANK)()
        self.library.check(self.so.schedc_tensor_shape(self.library.context, self.handle, _size(i), given, _size(n), shape))
        return list(shape[:self.tensors[i][3]])

    def describe(self, addresses, shapes, strides=None):
        """Tensors at these addresses as schedc_launch and schedc_compare take them; without strides, contiguous."""
        all_ = (Tensor * max(1, len(self.tensors)))()
        for i, ((name, kind, _, rank), at, shape) in enumerate(zip(self.tensors, addresses, shapes)):
            t = all_[i]
            t.name, t.data, t.type, t.rank = name.encode(), at, TYPES.index(kind), rank
            for d, n in enumerate(strides[i] if strides else contiguous(shape)):
                t.shape[d], t.strides[d] = shape[d], n
        return all_

    def predict(self, dims):
        """What a launch would take by the cost model, for shapes under these dimensions, on an H200."""
        shapes = [self.shape(i, dims) for i in range(len(self.tensors))]
        tensors, out = self.describe([None] * len(shapes), shapes), Prediction(ctypes.sizeof(Prediction))
        self.library.check(self.so.schedc_predict(self.library.context, self.handle, tensors, _size(len(shapes)), None,
                                                  _size(0), None, ctypes.byref(out)))
        return out

    def compare(self, tensors):
        """Outputs in host memory against the specification: a list of Error."""
        n = self.so.schedc_output_count(self.handle)
        errors = (Error * max(1, n))()
        errors[0].size = ctypes.sizeof(Error)
        options = _CompareOptions(ctypes.sizeof(_CompareOptions), 0, 0, 0, None, 0)
        self.library.check(self.so.schedc_compare(self.library.context, self.handle, tensors, _size(len(self.tensors)),
                                                  None, _size(0), ctypes.byref(options), errors))
        return list(errors[:n])

    def load(self):
        options = _LoadOptions(ctypes.sizeof(_LoadOptions), None)
        self.library.check(self.so.schedc_load(ctypes.byref(self.loaded), self.library.context, self.handle,
                                               ctypes.byref(options)))

    def run_cpu(self, tensors):
        """On tensors in host memory, by the interpreter; scalars have their defaults."""
        self.library.check(self.so.schedc_run_cpu(self.library.context, self.handle, tensors, _size(len(self.tensors)),
                                                  None, _size(0), None))

    def workspace(self, tensors, scalars=None):
        n = _size()
        self.library.check(self.so.schedc_workspace_size(self.library.context, self.loaded, tensors,
                                                         _size(len(self.tensors)), *_scalars(scalars), ctypes.byref(n)))
        return n.value

    def launch(self, stream, tensors, workspace=None, workspace_bytes=0, scalars=None):
        status = self.so.schedc_launch(self.library.context, self.loaded, _at(stream), tensors,
                                       _size(len(self.tensors)), *_scalars(scalars), _at(workspace), _size(workspace_bytes))
        if status:
            self.library.check(status)

    def close(self):
        self.so.schedc_unload(self.loaded)
        self.so.schedc_kernel_free(self.handle)
        self.loaded, self.handle = _at(), _at()
