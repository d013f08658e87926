"""Checks of tests/gpu/launch.py: streams, CUDA graphs, host threads, CUDA contexts; that a launch neither waits nor
allocates."""
import copy
import ctypes
import math
import threading
import time

import torch

import kit
from checks import expect_failure
from kit import Gpu, Library, compare_attention, describe, distance, expect, launch, make, prepare

SIZES = {"B": 2, "M": 200, "N": 333, "H": 4, "G": 2}
SHORT = {"B": 1, "M": 130, "N": 200, "H": 2, "G": 1}
LONG = {"B": 1, "M": 6000, "N": 6000, "H": 6, "G": 2}
NAP = 100_000_000  # cycles: 50 ms or more
CAPTURED = [("fa3_fwd", {}), ("fa3_stale", {}), ("fa3_stale", {"causal": True})]
KERNEL_NODE, MEMSET_NODE = 0, 2  # CUgraphNodeType
NON_BLOCKING, GLOBAL = 1, 0      # CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_GLOBAL


class Driver:
    """Functions of libcuda; an error raises."""

    def __init__(self):
        self.so = ctypes.CDLL("libcuda.so.1")

    def __getattr__(self, name):
        function = getattr(self.so, name)

        def call(*args):
            status = function(*args)
            expect(status == 0, f"{name}: CUDA error {status}")
        return call

    def current(self):
        context = ctypes.c_void_p()
        self.cuCtxGetCurrent(ctypes.byref(context))
        return context.value


def views_of(kernel, dims):
    return [view for _, view in make(kernel, dims, {})]


def renew(views):
    """Other inputs in the same places, and outputs full of NaN, of attention."""
    for view in views[:3]:
        view.copy_(torch.randn(view.shape, device=kit.DEVICE))
    for view in views[3:]:
        view.fill_(math.nan)


def bits(views):
    """Of the outputs of attention."""
    return [view.clone() for view in views[3:]]


def expect_bits(views, want, text):
    expect(all(torch.equal(a, b) for a, b in zip(views[3:], want)), text)


# ---- streams

def in_order(kernels):
    """A launch comes after what is on its stream already, which the default stream does not wait for."""
    kernel = kernels.get("gemm")
    a, b, c = views_of(kernel, {"M": 200, "N": 264, "K": 136})
    fresh = torch.randn(a.shape, device=kit.DEVICE).to(a.dtype)
    run, stream = prepare(kernel, (a, b, c)), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(NAP)
        a.copy_(fresh)
        run()
    torch.cuda.synchronize()
    return distance("C", c, *kit.gemm(fresh, b))


def no_waiting(kernels):
    """Launches with shapes that are known and with new ones return while the stream is still busy."""
    kernel, longest = kernels.get("fa3_stale"), 0.0
    sets = [views_of(kernel, {**SHORT, "M": m}) for m in range(100, 120)]
    launch(kernel, sets[0])
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    torch.cuda._sleep(NAP)  # on the default stream, too
    with torch.cuda.stream(stream):
        torch.cuda._sleep(NAP)
        for views in sets:
            begun = time.monotonic()
            kernel.launch(stream.cuda_stream, describe(kernel, views))
            longest = max(longest, time.monotonic() - begun)
    expect(not stream.query(), "the stream is done when the launches return")
    torch.cuda.synchronize()
    for views in sets:
        compare_attention(*views, False)
    return {"longest_ms": longest * 1e3}


def no_allocation(kernels):
    """After a first launch, 500 more with 20 shapes leave the GPU's free memory as it is."""
    kernel = kernels.get("fa3_stale")
    sets = [views_of(kernel, {**SHORT, "M": m}) for m in range(100, 120)]
    launch(kernel, sets[0])
    before = torch.cuda.mem_get_info()[0]
    for i in range(500):
        kernel.launch(torch.cuda.current_stream().cuda_stream, describe(kernel, sets[i % 20]))
    after = torch.cuda.mem_get_info()[0]
    torch.cuda.synchronize()
    expect(before == after, f"{before - after} bytes of the GPU's memory are gone")


def loaded_behind_work(kernels):
    """Launched on a stream that does not wait for the default one, as soon as it is loaded."""
    stream = torch.cuda.Stream()
    views = views_of(kernels.get("fa3_stale", causal=True), SIZES)  # its machine code is in the cache
    junk = torch.full((1 << 20,), 0x55, dtype=torch.uint8, device=kit.DEVICE)
    del junk
    torch.cuda.synchronize()
    torch.cuda.empty_cache()  # the driver hands out that memory next
    torch.cuda._sleep(NAP)
    kernel = kernels.fresh("fa3_stale", causal=True)
    with torch.cuda.stream(stream):
        kernel.launch(stream.cuda_stream, describe(kernel, views))
    torch.cuda.synchronize()
    kernel.close()
    return compare_attention(*views, True)


def overlap(kernels, schedule, params):
    """Long launches on one stream, many short ones of the same kernel on two others: the bits are those of one at a time."""
    kernel = kernels.get(schedule, **params)
    sets = [views_of(kernel, dims) for dims in (LONG, SHORT, {**SHORT, "M": 1500})]
    runs = [prepare(kernel, views) for views in sets]
    wants = []
    for run, views in zip(runs, sets):
        run()
        torch.cuda.synchronize()
        wants.append(bits(views))
    streams = [torch.cuda.Stream() for _ in sets]
    for turn in range(5):
        for views in sets:
            for view in views[3:]:
                view.fill_(math.nan)
        torch.cuda.synchronize()
        for _ in range(4):
            runs[0](streams[0].cuda_stream)
        for _ in range(300):
            runs[1](streams[1].cuda_stream)
            runs[2](streams[2].cuda_stream)
        torch.cuda.synchronize()
        for i, (views, want) in enumerate(zip(sets, wants)):
            expect_bits(views, want, f"time {turn + 1}: stream {i} has other bits")
    return compare_attention(*sets[1], params.get("causal", False))


def many_streams(kernels):
    """One kernel on 32 streams at once, eight times on each."""
    kernel = kernels.get("fa3_stale", causal=True)
    one = views_of(kernel, SHORT)
    launch(kernel, one)
    streams = [torch.cuda.Stream() for _ in range(32)]
    outputs = [[torch.full_like(v, math.nan) for v in one[3:]] for _ in range(256)]
    torch.cuda.synchronize()
    for i, out in enumerate(outputs):
        kernel.launch(streams[i % 32].cuda_stream, describe(kernel, one[:3] + out))
    torch.cuda.synchronize()
    for i, out in enumerate(outputs):
        expect_bits(one, out, f"launch {i} has other bits")


def threads(kernels):
    """Four host threads launch one loaded kernel, each with a library context, a stream and shapes of its own."""
    kernel, wrong = kernels.get("fa3_stale"), []
    sets = [views_of(kernel, {**SHORT, "M": 100 + 50 * i}) for i in range(4)]
    for views in sets:
        launch(kernel, views)
    wants = [bits(views) for views in sets]
    torch.cuda.synchronize()

    def work(i):
        try:
            torch.cuda.set_device(0)
            torch.zeros(1, device=kit.DEVICE)  # makes the context current here
            mine, stream = copy.copy(kernel), torch.cuda.Stream()
            mine.library = Library()
            described = describe(kernel, sets[i])
            for _ in range(500):
                mine.launch(stream.cuda_stream, described)
            stream.synchronize()
            expect_bits(sets[i], wants[i], f"thread {i} has other bits")
        except Exception as error:  # told by the main thread
            wrong.append(f"thread {i}: {error}")
    all_ = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in all_:
        thread.start()
    for thread in all_:
        thread.join()
    expect(not wrong, "; ".join(wrong))


# ---- graphs

def captured(kernels, schedule, params):
    """The first launch of all is captured, which forbids whatever might wait or allocate; replayed with other inputs."""
    kernel, causal = kernels.fresh(schedule, **params), params.get("causal", False)
    views = views_of(kernel, SIZES)
    described, graph = describe(kernel, views), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel.launch(torch.cuda.current_stream().cuda_stream, described)
    torch.cuda.synchronize()
    expect(bool(torch.isnan(views[3]).all()), "it ran while it was captured")
    figures = {}
    for _ in range(3):
        renew(views)
        graph.replay()
        figures = compare_attention(*views, causal)
    del graph
    torch.cuda.synchronize()
    kernel.close()
    return figures


def captured_by_driver(kernels):
    """The driver's own calls, on a stream of its own; the graph has the launch and nothing else."""
    driver, kernel = Driver(), kernels.get("fa3_stale")
    views = views_of(kernel, SIZES)
    graph, types = capture(driver, prepare(kernel, views))
    expect(types == [KERNEL_NODE], f"the graph's nodes have types {types}")
    runs, stream, figures = Exec(driver, graph), torch.cuda.Stream(), {}
    for _ in range(3):
        renew(views)
        torch.cuda.synchronize()
        runs.launch(stream.cuda_stream)
        torch.cuda.synchronize()
        figures = compare_attention(*views, False)
    runs.close()
    return figures


def captured_sequence(kernels):
    """A sequence with a workspace: what sets it to zero is captured with its two kernels."""
    driver, kernel = Driver(), kernels.get("tests/gpu/sequence.sched")
    x, y = views_of(kernel, {"M": 300, "N": 200})
    run = prepare(kernel, (x, y))  # whose workspace the graph uses
    graph, types = capture(driver, run)
    expect(sorted(types) == [KERNEL_NODE, KERNEL_NODE, MEMSET_NODE], f"the graph's nodes have types {types}")
    runs, stream = Exec(driver, graph), torch.cuda.Stream()
    for _ in range(3):
        x.copy_(torch.randint(-8, 9, x.shape, device=kit.DEVICE))
        y.fill_(math.nan)
        torch.cuda.synchronize()
        runs.launch(stream.cuda_stream)
        torch.cuda.synchronize()
        expect(torch.equal(y, x * 200 - x.sum(1, keepdim=True)), "sums of integers differ")
    runs.close()


def capture(driver, run):
    """(graph, types of its nodes) of a launch, captured in the mode that forbids most."""
    stream, graph, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    torch.cuda.synchronize()
    driver.cuStreamCreate(ctypes.byref(stream), NON_BLOCKING)
    driver.cuStreamBeginCapture_v2(stream, GLOBAL)
    try:
        run(stream.value)
    finally:
        driver.cuStreamEndCapture(stream, ctypes.byref(graph))
    driver.cuGraphGetNodes(graph, None, ctypes.byref(count))
    nodes = (ctypes.c_void_p * max(1, count.value))()
    driver.cuGraphGetNodes(graph, nodes, ctypes.byref(count))
    types = []
    for node in nodes[:count.value]:
        kind = ctypes.c_int()
        driver.cuGraphNodeGetType(ctypes.c_void_p(node), ctypes.byref(kind))
        types.append(kind.value)
    driver.cuStreamDestroy_v2(stream)
    return graph, types


class Exec:
    """A graph that can be launched; closed with it."""

    def __init__(self, driver, graph):
        self.driver, self.graph, self.exec = driver, graph, ctypes.c_void_p()
        driver.cuGraphInstantiateWithFlags(ctypes.byref(self.exec), graph, ctypes.c_ulonglong(0))

    def launch(self, stream):
        self.driver.cuGraphLaunch(self.exec, ctypes.c_void_p(stream))

    def close(self):
        torch.cuda.synchronize()
        self.driver.cuGraphExecDestroy(self.exec)
        self.driver.cuGraphDestroy(self.graph)


def branches(kernels):
    """400 launches of one kernel with a dynamic grid, in four branches of a graph that run side by side."""
    kernel, graph = kernels.get("fa3_stale", causal=True), torch.cuda.CUDAGraph()
    one = views_of(kernel, SHORT)
    launch(kernel, one)
    outputs = [[torch.full_like(v, math.nan) for v in one[3:]] for _ in range(400)]
    described = [describe(kernel, one[:3] + out) for out in outputs]
    sides = [torch.cuda.Stream() for _ in range(3)]
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        main = torch.cuda.current_stream()
        for side in sides:
            side.wait_stream(main)
        for i, tensors in enumerate(described):
            kernel.launch((*sides, main)[i % 4].cuda_stream, tensors)
        for side in sides:
            main.wait_stream(side)
    for turn in range(5):
        for out in outputs:
            for view in out:
                view.fill_(math.nan)
        graph.replay()
        torch.cuda.synchronize()
        for i, out in enumerate(outputs):
            expect_bits(one, out, f"replay {turn + 1}: launch {i} has other bits")


def graphs_at_once(kernels):
    """Two graphs on two streams, and plain launches on a third, all of one kernel with a dynamic grid."""
    kernel = kernels.get("fa3_stale", causal=True)
    sets = [views_of(kernel, dims) for dims in ({**SHORT, "M": 3000, "N": 3000}, SHORT, {**SHORT, "M": 1500})]
    runs, graphs, wants = [prepare(kernel, views) for views in sets], [], []
    for run, views in zip(runs, sets):
        run()
        torch.cuda.synchronize()
        wants.append(bits(views))
    for run in runs[:2]:
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1]):
            for _ in range(8):
                run()
    streams = [torch.cuda.Stream() for _ in sets]
    for views in sets:
        for view in views[3:]:
            view.fill_(math.nan)
    torch.cuda.synchronize()
    for _ in range(50):
        for stream, graph in zip(streams, graphs):
            with torch.cuda.stream(stream):
                graph.replay()
        for _ in range(8):
            runs[2](streams[2].cuda_stream)
    torch.cuda.synchronize()
    for i, (views, want) in enumerate(zip(sets, wants)):
        expect_bits(views, want, f"stream {i} has other bits")


# ---- contexts

def in_thread(function):
    """On a new thread, which has no CUDA context."""
    wrong = []

    def work():
        try:
            function()
        except Exception as error:  # told by the main thread
            wrong.append(f"{type(error).__name__}: {error}")
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    expect(not wrong, "; ".join(wrong))


def run_on_host_tensors(library):
    """On the device's primary context, which is current during the run alone."""
    kernel = kit.Kernel(library, "schedules/copy.sched")
    x = torch.randn((100, 64)).half()
    y = torch.full_like(x, math.nan)
    gpu = Gpu(library)
    gpu.run(kernel, describe(kernel, (x, y)))
    gpu.close()
    kernel.close()
    expect(torch.equal(x, y), "Y differs from X")


def contexts(kernels):
    """The current context, or none, is found and left so by everything; a launch in the wrong one is refused."""
    driver, library, kernel = Driver(), Library(), kernels.get("gemm")
    views = views_of(kernel, {"M": 64, "N": 64, "K": 64})
    described, ours = describe(kernel, views), driver.current()
    expect(ours, "no context is current")

    def without():
        expect(driver.current() is None, "a new thread has a context")
        library.check(library.so.schedc_gpu_available(library.context, 0, None, ctypes.c_size_t(0)))
        run_on_host_tensors(library)
        expect_failure(lambda: kernels.fresh("copy"), "no CUDA context is current")
        expect_failure(lambda: kernel.launch(0, described), "no CUDA context is current")
        expect(driver.current() is None, "a context was left current")

    def within_another():
        other, device = ctypes.c_void_p(), ctypes.c_int()
        driver.cuDeviceGet(ctypes.byref(device), 0)
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(other), device)  # found current by what follows
        driver.cuCtxSetCurrent(other)
        expect(driver.current() == ours, "PyTorch's context is not the primary one")
        driver.cuCtxCreate_v2(ctypes.byref(other), 0, device)
        expect(driver.current() == other.value != ours, "the new context is not current")
        expect_failure(lambda: kernel.launch(0, described), "another CUDA context is current")
        run_on_host_tensors(library)
        kernels.fresh("copy").close()
        expect(driver.current() == other.value, "another context was left current")
        driver.cuCtxDestroy_v2(other)
        expect(driver.current() == ours, "the context below is not the one that was there")
        driver.cuCtxSetCurrent(None)
        driver.cuDevicePrimaryCtxRelease_v2(device)

    in_thread(without)
    in_thread(within_another)
    run_on_host_tensors(library)
    kernels.fresh("copy").close()
    launch(kernel, views)
    expect(driver.current() == ours, "another context was left current")
    return distance("C", views[2], *kit.gemm(*views[:2]))


# ---- all of them

def run(checks, kernels):
    for name, function in (("a stream's order", in_order), ("nothing waits", no_waiting),
                           ("nothing is allocated", no_allocation), ("loaded behind work", loaded_behind_work),
                           ("32 streams", many_streams), ("four threads", threads), ("contexts", contexts),
                           ("captured by the driver", captured_by_driver), ("captured sequence", captured_sequence),
                           ("400 launches in branches", branches), ("graphs side by side", graphs_at_once)):
        checks.run(name, function, kernels)
    for schedule, params in CAPTURED:
        what = schedule + (" causal" if params else "")
        checks.run(f"{what}: captured at once", captured, kernels, schedule, params)
        checks.run(f"{what}: three streams", overlap, kernels, schedule, params)
