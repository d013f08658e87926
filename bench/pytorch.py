"""PyTorch beside schedc: what peers.py, memory.py and tests/gpu/launch.py share."""
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


def environment(torch, version):
    """version: of schedc."""
    properties = torch.cuda.get_device_properties(0)
    return {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "command": command_line(),
            "device": properties.name, "multiprocessors": properties.multi_processor_count, "torch": torch.__version__,
            "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "schedc": version}


def workspace(torch, room):
    """(what keeps so many bytes on the GPU, their address): it is a multiple of 256."""
    kept = torch.empty(room + 256, dtype=torch.uint8, device="cuda")
    return kept, (kept.data_ptr() + 255) // 256 * 256
