"""The CUDA driver from Python, through ctypes, as callers of libschedc use it: a context, streams, events, graphs, and tensors
that numpy fills. For tests/device.py, where the model of a GPU stands in for the driver."""
import ctypes

import numpy

import strides
from checks import Wrong
from libschedc import OUT

NOT_READY, LAUNCH_FAILED = 600, 719  # CUresult
NON_BLOCKING, GLOBAL = 1, 0  # CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_GLOBAL


class CudaError(Wrong):
    """What a function of the driver returned, with the driver's words for it."""

    def __init__(self, name, status, text):
        super().__init__(f"{name}: CUDA error {status}: {text}")
        self.status = status


class Driver:
    """Its functions; an error raises CudaError."""

    def __init__(self, path):
        self.so = ctypes.CDLL(path)

    def __getattr__(self, name):
        function = getattr(self.so, name)

        def call(*args):
            status = function(*args)
            if status:
                raise CudaError(name, status, self.text(status))
        return call

    def text(self, status):
        text = ctypes.c_char_p()
        self.so.cuGetErrorString(status, ctypes.byref(text))
        return (text.value or b"").decode()


def pointer(value=None):
    return ctypes.c_void_p(value)


def size(n):
    return ctypes.c_size_t(n)


class Context:
    """The device's primary context, current from here to `close`; and what is made in it."""

    def __init__(self, driver):
        self.driver, self.pieces, context = driver, [], pointer()
        driver.cuInit(0)
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        driver.cuCtxPushCurrent_v2(context)
        self.handle = context.value

    def close(self):
        """Whatever state it is in."""
        for at in self.pieces:
            self.driver.so.cuMemFree_v2(ctypes.c_uint64(at))
        self.driver.so.cuCtxPopCurrent_v2(ctypes.byref(pointer()))
        self.driver.cuDevicePrimaryCtxRelease_v2(0)

    def synchronize(self):
        self.driver.cuCtxSynchronize()

    # ---- memory

    def allocate(self, n):
        at = ctypes.c_uint64()
        self.driver.cuMemAlloc_v2(ctypes.byref(at), size(n or 16))
        self.pieces.append(at.value)
        return at.value

    def put(self, at, array):
        if array.nbytes:
            self.driver.cuMemcpyHtoD_v2(ctypes.c_uint64(at), pointer(array.ctypes.data), size(array.nbytes))

    def get(self, at, array):
        if array.nbytes:
            self.driver.cuMemcpyDtoH_v2(pointer(array.ctypes.data), ctypes.c_uint64(at), size(array.nbytes))

    # ---- streams

    def stream(self, flags=NON_BLOCKING):
        stream = pointer()
        self.driver.cuStreamCreate(ctypes.byref(stream), flags)
        return stream.value

    def event(self, stream):
        """Recorded behind what is on the stream."""
        event = pointer()
        self.driver.cuEventCreate(ctypes.byref(event), 0)
        self.driver.cuEventRecord(event, pointer(stream))
        return event

    def captured(self, function):
        """A graph of what a function does on the stream that it is given, ready to be launched."""
        stream, graph, runs = self.stream(), pointer(), pointer()
        self.driver.cuStreamBeginCapture_v2(pointer(stream), GLOBAL)
        try:
            function(stream)
        finally:
            self.driver.cuStreamEndCapture(pointer(stream), ctypes.byref(graph))
        self.driver.cuGraphInstantiateWithFlags(ctypes.byref(runs), graph, ctypes.c_ulonglong(0))
        self.driver.cuGraphDestroy(graph)
        self.driver.cuStreamDestroy_v2(pointer(stream))
        return runs

    def replay(self, runs, stream):
        self.driver.cuGraphLaunch(runs, pointer(stream))


class Tensors:
    """Those of a kernel, on the GPU: inputs drawn, all else NaN, around them too. `views` are what they are on the host."""

    def __init__(self, context, kernel, dims, layout=None, draw=None):
        self.context, self.kernel = context, kernel
        draw = draw or numpy.random.default_rng(5)
        self.storages, self.views = strides.make(kernel, dims, layout or {}, draw)
        self.at = [context.allocate(storage.nbytes) for storage in self.storages]
        offsets = [view.ctypes.data - storage.ctypes.data if view.size else 0
                   for storage, view in zip(self.storages, self.views)]
        self.addresses = [at + offset for at, offset in zip(self.at, offsets)]
        self.upload()

    def upload(self):
        for at, storage in zip(self.at, self.storages):
            self.context.put(at, storage)

    def download(self):
        for at, storage in zip(self.at, self.storages):
            self.context.get(at, storage)

    def peek(self):
        """As `download`, but calls nothing that waits: the memory of the model is the host's."""
        for at, storage in zip(self.at, self.storages):
            ctypes.memmove(storage.ctypes.data, at, storage.nbytes)

    def steps(self):
        return [[n // view.itemsize for n in view.strides] for view in self.views]

    def described(self):
        """As schedc_launch takes them."""
        return self.kernel.describe(self.addresses, [view.shape for view in self.views], self.steps())

    def outputs(self):
        return {t[0]: (storage, view) for t, storage, view in zip(self.kernel.tensors, self.storages, self.views)
                if t[2] & OUT}

    def bits(self):
        """Of the outputs, as they are on the GPU now."""
        self.download()
        return {name: storage.tobytes() for name, (storage, _) in self.outputs().items()}

    def clear(self):
        """Outputs are NaN again."""
        for storage, _ in self.outputs().values():
            storage.fill(numpy.nan)
        self.upload()

    def check(self):
        """What is on the GPU now is what the specification says, and nothing else is written."""
        self.download()
        for error in self.kernel.compare(strides.describe(self.kernel, self.views)):
            if not error.pass_:
                raise Wrong(f"'{error.tensor.decode()}' is off by {error.max_error:.3e}; allowed is {error.max_allowed:.3e}")
        for name, (storage, view) in self.outputs().items():
            around = int(numpy.isnan(storage).sum()) - (storage.size - view.size)
            if around:
                raise Wrong(f"{abs(around)} elements {'of' if around > 0 else 'beside'} '{name}' are "
                            f"{'not ' if around > 0 else ''}written")


class Launcher:
    """Launches a loaded kernel on some tensors, in a workspace of its own."""

    def __init__(self, tensors, scalars=None):
        self.kernel, self.tensors, self.scalars = tensors.kernel, tensors, scalars
        self.described = tensors.described()
        self.room = self.kernel.workspace(self.described, scalars)
        self.workspace = tensors.context.allocate(self.room) if self.room else None

    def __call__(self, stream=None):
        self.kernel.launch(stream, self.described, self.workspace, self.room, self.scalars)
