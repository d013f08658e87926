"""What the checks of tests/gpu/launch.py share: kernels that are loaded, tensors laid out as layouts.py says, references
in float64, and a list of checks that goes on when one fails."""
import math
import os

import torch

import calls
import checks
import layouts
import pytorch
from checks import Skip, Wrong, expect  # noqa: F401
from libschedc import OUT, Failed, Gpu, Kernel, Library  # noqa: F401

HERE = os.path.dirname(os.path.abspath(__file__))

TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i32": torch.int32}
DEVICE = "cuda"
SLACK = 1e-3  # of a log-sum-exp


# ---- the list of checks

class Checks(checks.Checks):
    """Writes what it knows as JSON after each."""

    def __init__(self, out, document, only=None):
        super().__init__(only)
        self.out, self.document = out, document
        self.document["checks"] = self.results
        self.lost = None  # the name of the check after which CUDA does not answer any more

    def run(self, name, function, *args):
        super().run(name, function, *args)
        self.document.update({o: self.count(o) for o in ("passed", "failed", "skipped")})
        calls.write(self.out, self.document)

    def begin(self):
        expect(not self.lost, f"not run: CUDA does not answer since '{self.lost}'")

    def settle(self, name):
        """An error of the GPU's is sticky; what was allocated by the check is given back."""
        if self.lost:
            return
        try:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        except RuntimeError:
            self.lost = name


# ---- kernels

class Kernels:
    """Each kernel or sequence under each params is built and loaded once. Paths are as `schedc test` is given them: the
    machine code is in the cache then."""

    def __init__(self, library):
        self.library, self.known = library, {}

    def get(self, schedule, unit=None, **params):
        key = schedule, unit, tuple(sorted(params.items()))
        if key not in self.known:
            self.known[key] = self.fresh(schedule, unit, **params)
        return self.known[key]

    def fresh(self, schedule, unit=None, **params):
        path = schedule if os.path.sep in schedule else os.path.join("schedules", schedule + ".sched")
        kernel = Kernel(self.library, path, unit, params)
        kernel.load()
        return kernel


def describe(kernel, tensors):
    return kernel.describe([t.data_ptr() for t in tensors], [t.shape for t in tensors], [t.stride() for t in tensors])


def prepare(kernel, tensors, scalars=None):
    """A function that launches on the current stream, or on the one that it is given, in a workspace of its own."""
    described = describe(kernel, tensors)
    room = kernel.workspace(described, scalars)
    kept, at = pytorch.workspace(torch, room)

    def run(stream=None):
        stream = torch.cuda.current_stream().cuda_stream if stream is None else stream
        kernel.launch(stream, described, at, room, scalars)
    run.keeps = kept, tensors  # which must live as long as it
    return run


def launch(kernel, tensors, scalars=None):
    run = prepare(kernel, tensors, scalars)
    run()
    torch.cuda.synchronize()


# ---- tensors

def tensor(shape, kind, layout, normal):
    """(storage, view): NaN everywhere (of integers, 0), or normal numbers in the view."""
    strides, offset, size = layouts.place(shape, **layout)
    storage = torch.full((size,), 0 if kind == "i32" else math.nan, dtype=TYPES[kind], device=DEVICE)
    view = storage.as_strided(shape, strides, offset)
    once = storage.as_strided([min(n, 1) if s == 0 else n for n, s in zip(shape, strides)], strides, offset)
    if normal and kind != "i32":
        once.copy_(torch.randn(once.shape, device=DEVICE))
    return storage, view


def make(kernel, dims, layout):
    """[(storage, view)] in the kernel's order: inputs normal, outputs NaN."""
    made = []
    for i, (name, kind, direction, _) in enumerate(kernel.tensors):
        made.append(tensor(kernel.shape(i, dims), kind, layout.get(name, {}), not direction & OUT))
    return made


def expect_written(name, storage, view):
    """Every element of the view, and nothing else."""
    inside = torch.zeros(storage.shape, dtype=torch.bool, device=storage.device)
    inside.as_strided(view.shape, view.stride(), view.storage_offset()).fill_(True)
    written = ~torch.isnan(storage)
    expect(torch.equal(written & inside, inside), f"{int((inside & ~written).sum())} elements of {name} are not written")
    expect(torch.equal(written, inside), f"{int((written & ~inside).sum())} elements beside {name} are written")


# ---- references

def attention(q, k, v, causal, scale=None):
    """(O, L) in float64, and O with every step rounded to q's type."""
    m, n, h = q.shape[1], k.shape[1], q.shape[2]
    scale = scale or 1 / math.sqrt(q.shape[3])
    group = h // max(1, k.shape[2])
    hidden = torch.zeros((m, n), dtype=torch.bool, device=q.device)
    if causal:
        hidden = torch.arange(n, device=q.device)[None, :] > torch.arange(m, device=q.device)[:, None] + n - m

    def outputs(kind):
        wide = [x.to(kind).repeat_interleave(group, 2) if x is not q else x.to(kind) for x in (q, k, v)]
        s = (torch.einsum("bmhd,bnhd->bhmn", wide[0], wide[1]) * scale).masked_fill(hidden, -math.inf)
        top = s.amax(3, keepdim=True) if n else s.new_full((*s.shape[:3], 1), -math.inf)
        top = torch.where(torch.isinf(top), torch.zeros_like(top), top)
        p = torch.exp(s - top)
        z = p.sum(3, keepdim=True)
        o = torch.einsum("bhmn,bnhd->bmhd", torch.where(z == 0, torch.zeros_like(p), p / z), wide[2])
        return o, (top + torch.log(z))[..., 0]
    o, l = outputs(torch.float64)
    return o, l, outputs(q.dtype)[0]


def gemm(a, b):
    """In float64, and rounded to a's type."""
    return a.double() @ b.double().t(), a @ b.t()


def distance(name, out, ref, rounded):
    """FlashAttention's bounds: by the error of the same steps in the tensors' own type."""
    if not ref.numel():
        return {}
    error = (out.double() - ref).abs()
    once = ref.to(out.dtype)
    allowed = 2 * (rounded.double() - ref).abs().max() + 2 * (once + 0.3 - 0.3 - once).double().abs().max()
    worst, mean, most = error.max().item(), error.mean().item(), 1.5 * (rounded.double() - ref).abs().mean().item()
    expect(worst <= allowed.item(), f"{name} is off by {worst:.3e}; allowed is {allowed.item():.3e}")
    expect(mean <= most, f"{name} is off by {mean:.3e} in the mean; allowed is {most:.3e}")
    return {f"{name}_error": worst, f"{name}_allowed": allowed.item()}


def same_sums(name, out, ref):
    """Of log-sum-exps: the same infinities, and close."""
    none = torch.isinf(ref)
    expect(torch.equal(out[none].double(), ref[none]), f"{name} is not -inf where a row sees no key")
    worst = (out.double() - ref)[~none].abs().max().item() if (~none).any() else 0.0
    expect(worst <= SLACK, f"{name} is off by {worst:.3e}; allowed is {SLACK:.0e}")
    return {f"{name}_error": worst}


def compare_attention(q, k, v, o, l, causal):
    ref, sums, rounded = attention(q, k, v, causal)
    return {**distance("O", o, ref, rounded), **same_sums("L", l, sums)}
