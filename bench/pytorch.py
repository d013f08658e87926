"""PyTorch beside libschedc: what peers.py and tests/gpu/launch.py share."""
import datetime
import sys

from calls import command_line


def find(program):
    """PyTorch, its CUDA context current; None if it is not here or sees no GPU, which is told."""
    try:
        import torch
    except ImportError:
        print(f"{program}: PyTorch is needed (python3 -c 'import torch')", file=sys.stderr)
        return None
    if not torch.cuda.is_available():
        print(f"{program}: PyTorch sees no GPU", file=sys.stderr)
        return None
    torch.zeros(1, device="cuda")  # makes its context current
    return torch


def environment(torch, library):
    properties = torch.cuda.get_device_properties(0)
    return {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "command": command_line(),
            "device": properties.name, "multiprocessors": properties.multi_processor_count, "torch": torch.__version__,
            "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "schedc": library.version}


def launcher(torch, kernel, described, scalars=None):
    """A function that launches on the current stream, or on the one that it is given, in a workspace that it keeps."""
    room = kernel.workspace(described, scalars)
    workspace = torch.empty(room + 256, dtype=torch.uint8, device="cuda")
    at = (workspace.data_ptr() + 255) // 256 * 256

    def run(stream=None):
        stream = torch.cuda.current_stream().cuda_stream if stream is None else stream
        kernel.launch(stream, described, at, room, scalars)
    run.keeps = workspace
    return run
