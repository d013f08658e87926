"""Checks of tests/gpu/launch.py: C headers (shims.py), launched on the tensors that schedc_launch is given: the outputs are
the same, launch after launch."""
import math
import tempfile

import torch

from checks import expect
from kit import DEVICE, OUT, launch, make
from shims import CASES, NEAR, UNORDERED, Shim


def same(name, out, wanted):
    if name in UNORDERED:
        return bool((out.double() - wanted.double()).abs().max() <= NEAR * wanted.double().abs().max())
    return torch.equal(out.contiguous().view(torch.uint8), wanted.contiguous().view(torch.uint8))


def inputs_of(kernel, dims):
    """Tensors, inputs small integers; and the outputs among them, by name."""
    views = [view for _, view in make(kernel, dims, {})]
    for (_, _, direction, _), view in zip(kernel.tensors, views):
        if not direction & OUT:
            view.copy_(torch.randint(-3, 4, view.shape, device=DEVICE))
    return views, {name: view for (name, _, direction, _), view in zip(kernel.tensors, views) if direction & OUT}


def same_outputs(kernels, path, unit, dims, scalars):
    kernel = kernels.get(path, unit)
    views, outputs = inputs_of(kernel, dims)
    launch(kernel, views, scalars)
    wanted = {name: view.clone() for name, view in outputs.items()}
    for name, view in wanted.items():
        expect(not bool(torch.isnan(view).any()), f"schedc_launch leaves NaN in '{name}'")
    with tempfile.TemporaryDirectory() as folder:
        with Shim(folder, "build/release/schedc", "libcuda.so.1", path, unit) as shim:
            arguments = shim.arguments(kernel, [v.data_ptr() for v in views], [v.stride() for v in views], dims, scalars)
            launches(shim, arguments, outputs, wanted)


def launches(shim, arguments, outputs, wanted):
    """Of the header's, three in the same workspace."""
    workspace = torch.full((shim.room(arguments) + 256,), 0xff, dtype=torch.uint8, device=DEVICE)
    for turn in range(3):
        for view in outputs.values():
            view.fill_(math.nan)
        at = (workspace.data_ptr() + 255) // 256 * 256
        error = shim.launch(arguments, at, torch.cuda.current_stream().cuda_stream)
        torch.cuda.synchronize()
        expect(error == 0, f"launch {turn + 1}: CUDA error {error}")
        for name, view in outputs.items():
            expect(same(name, view, wanted[name]), f"launch {turn + 1}: '{name}' is not what schedc_launch gives")


def run(checks, kernels):
    for name, case in CASES.items():
        checks.run(f"C header: {name}", same_outputs, kernels, *case)
