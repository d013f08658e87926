"""Checks of tests/device.py (the model of a GPU) and tests/gpu/lists.py: lists of which a schedule says what their elements are,
as launches have the GPU look at them, and as schedc_check_elements does."""
import ctypes
import tempfile

import numpy

import shims
from checks import expect, expect_failure
from driver import LAUNCH_FAILED, Context, CudaError, pointer, size
from setting import load, run_as

LIST, MADE = "tests/unusual/from_offset_to_offset.sched", "tests/gpu/lists.sched"
ROWS, GOOD = 5, [0, 2, 2, 5]
# By elements: what is said of them.
BAD = {(0, 2, 2, 6): "is 6, but it is declared in 0 .. 6", (-1, 2, 2, 5): "is -1, but it is declared in 0",
       (0, 3, 2, 5): "is 2, less than the one before"}
HARMLESS = [0, 2, 2, 6]  # what is beyond a tensor reads as 0, and is not written


class Blocks:
    """Tensors of a kernel or sequence that doubles blocks of rows from offset to offset, on a context of their own."""

    def __init__(self, s, begin, unit=None, trust=False):
        self.s, self.context = s, Context(s.driver)
        self.kernel = s.parsed(MADE if unit else LIST, unit)
        load(s, self.kernel, trust_elements=trust)
        self.scalars = [0.0] if unit == "blocks_of_lists" else []
        self.begin, p = begin, len(begin) - 1
        x = numpy.arange(ROWS * 64 * 32, dtype=numpy.float32).reshape(ROWS * 64, 32)
        lists = numpy.array([begin, begin] if unit == "blocks_of_lists" else begin, numpy.int32)
        given = {"X": x, "begin": lists, "lists": lists, "Y": numpy.zeros_like(x)}
        self.names = [name for name, *_ in self.kernel.tensors]
        self.arrays = [given[name] for name in self.names]
        self.at = [self.context.allocate(a.nbytes) for a in self.arrays]
        for at, array in zip(self.at, self.arrays):
            self.context.put(at, array)
        self.want = 2 * x * ((numpy.arange(ROWS * 64) // 64 < begin[p]) & (numpy.arange(ROWS * 64) // 64 >= begin[0]))[:, None]
        self.steps = [[n // a.itemsize for n in a.strides] for a in self.arrays]
        self.described = self.kernel.describe(self.at, [a.shape for a in self.arrays], self.steps)
        self.room = self.kernel.workspace(self.described, self.scalars)
        self.workspace = self.context.allocate(self.room) if self.room else None

    def spoil(self, stream, byte):
        """The list's bytes are set on a stream."""
        i = next(i for i, name in enumerate(self.names) if name in ("begin", "lists"))
        self.s.driver.cuMemsetD8Async(ctypes.c_uint64(self.at[i]), ctypes.c_ubyte(byte), size(self.arrays[i].nbytes),
                                      pointer(stream))

    def launch(self, stream):
        self.kernel.launch(stream, self.described, self.workspace, self.room, self.scalars)

    def end(self, stream):
        """The stream has ended, and the result is right."""
        self.s.driver.cuStreamSynchronize(pointer(stream))
        found = numpy.full_like(self.want, numpy.nan)
        self.context.get(self.at[-1], found)
        expect(numpy.array_equal(found, self.want), "the blocks are not all doubled")

    def fail(self, stream, *words):
        """Who waits is told, and nothing was written."""
        try:
            self.s.driver.cuStreamSynchronize(pointer(stream))
        except CudaError as error:
            expect(error.status == LAUNCH_FAILED, str(error))
            for word in ("[promise]", ".sched:", *words) if self.s.is_model else ():
                expect(word in str(error), f"nothing says '{word}': {error}")
        else:
            expect(False, "the stream ends without an error")
        if not self.s.is_model:  # nothing can be read of a context that is lost
            return
        found = numpy.full_like(self.want, numpy.nan)
        ctypes.memmove(found.ctypes.data, self.at[-1], found.nbytes)  # the model's memory is the host's
        expect(not found.any(), "the kernel ran on a list that is not as promised")

    def close(self):
        self.kernel.close()
        self.context.close()


def with_blocks(s, test, *args):
    blocks = Blocks(s, *args)
    try:
        test(blocks, blocks.context.stream())
    finally:
        blocks.close()


def launched(blocks, stream):
    for _ in range(2):
        blocks.launch(stream)
        blocks.end(stream)


def refused(*words):
    def test(blocks, stream):
        blocks.launch(stream)
        blocks.launch(stream)
        blocks.fail(stream, *words)
        expect_failure(lambda: blocks.launch(stream), "does not start", "an earlier launch has failed")
    return test


def spoiled(blocks, stream):
    """What the stream does before a launch comes before it."""
    blocks.launch(stream)
    blocks.end(stream)
    blocks.s.driver.cuMemsetD8Async(ctypes.c_uint64(blocks.at[-1]), ctypes.c_ubyte(0), size(blocks.want.nbytes), pointer(stream))
    blocks.spoil(stream, 1)
    blocks.launch(stream)
    blocks.fail(stream, "is 16843009")


def captured(blocks, stream):
    graph = blocks.context.captured(blocks.launch)
    blocks.context.replay(graph, stream)
    blocks.end(stream)
    blocks.s.driver.cuMemsetD8Async(ctypes.c_uint64(blocks.at[-1]), ctypes.c_ubyte(0), size(blocks.want.nbytes), pointer(stream))
    blocks.spoil(stream, 1)
    blocks.context.replay(graph, stream)
    blocks.fail(stream, "is 16843009")


def header(s, good, trust):
    """The functions of a C header look, too, unless it is built without."""
    folder, flags = tempfile.mkdtemp(dir=s.folder), ["--trust-elements"] if trust else []

    def test(blocks, stream):
        with shims.Shim(folder, s.schedc, s.driver_path, MADE, "blocks_of_lists", *flags) as shim:
            arguments = shim.arguments(blocks.kernel, blocks.at, blocks.steps, {"L": ROWS, "P": len(GOOD) - 1}, blocks.scalars)
            workspace = blocks.context.allocate(shim.room(arguments))
            expect(shim.launch(arguments, workspace, pointer(stream)) == 0, "it is not launched")
            if good or trust:
                blocks.end(stream)
            else:
                blocks.fail(stream, "is 6")
    with_blocks(s, test, GOOD if good else HARMLESS, "blocks_of_lists")


def asked(s):
    """schedc_check_elements names the element as it is once the stream has ended, and leaves the context whole."""
    def check(blocks, stream):
        s.library.check(s.library.so.schedc_check_elements(s.library.context, blocks.kernel.loaded, pointer(stream),
                                                           blocks.described, size(len(blocks.names)), None, size(0)))

    def bad(*words):
        return lambda blocks, stream: expect_failure(lambda: check(blocks, stream), "error[T.element]", *words)
    for good in (GOOD, [5, 5], [0]):
        with_blocks(s, check, good)
    for elements, words in BAD.items():
        with_blocks(s, bad("of 'begin' " + words, "from_offset_to_offset.sched:"), list(elements))

    def changed(blocks, stream):
        blocks.spoil(stream, 1)
        expect_failure(lambda: check(blocks, stream), "element [0] of 'begin' is 16843009")
        blocks.spoil(stream, 0)
        check(blocks, stream)
    with_blocks(s, changed, GOOD)


def run(checks, s):
    """Each on a context of its own."""
    if s.is_model:
        run_as()
    checks.run("lists: asked for", asked, s)
    for unit in (None, "blocks", "blocks_of_lists"):
        name = unit or "of a kernel"
        checks.run(f"lists {name}: as promised", with_blocks, s, launched, GOOD, unit)
        for elements, words in BAD.items():
            checks.run(f"lists {name}: {list(elements)}", with_blocks, s, refused("0x", words), list(elements), unit)
        checks.run(f"lists {name}: trusted", with_blocks, s, launched, HARMLESS, unit, True)
    checks.run("lists: made on the stream", with_blocks, s, spoiled, GOOD)
    checks.run("lists: captured", with_blocks, s, captured, GOOD)
    checks.run("lists: captured, of a sequence", with_blocks, s, captured, GOOD, "blocks_of_lists")
    for good in (True, False):
        for trust in (False, True):
            checks.run(f"lists: C header{', trusting' * trust}: {'good' if good else 'bad'}", header, s, good, trust)
