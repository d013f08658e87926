"""schedc: kernels for Hopper GPUs, written as schedules, compiled, proved free of races and deadlocks, and called on tensors
of PyTorch, CuPy or JAX; and on the CPU, by an interpreter, on NumPy's.

    import schedc
    attention = schedc.load("fa3_stale.sched", D=128)
    o, l = attention(q, k, v)

The C library that does all this is documented in schedc.h; python/README.md is about this package.
"""
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, List, Optional

from . import _core, _report, _views

_core.connect(_report.report, _views.view)

from ._kernel import (Binding, Certificate, Difference, Kernel, Param, Prediction, Proof, Scalar, Tensor,  # noqa: E402
                      Work)
from ._report import (Diagnostic, Error, FaultError, Note, Range, ScheduleError, ScheduleWarning,  # noqa: E402
                      UnavailableError)
from ._source import SCHEDULES, Source, Unit, load  # noqa: E402
from ._store import Record, Store  # noqa: E402
from ._tune import Candidate, Progress, Trial, Tuning, tune  # noqa: E402
from ._views import Memory  # noqa: E402

if TYPE_CHECKING:
    from ._attention import flash_attn_func, flash_attn_varlen_func
    from ._fp8 import flash_attn_fp8_func

__version__ = _core.version()
__all__ = ["Binding", "Candidate", "Certificate", "Diagnostic", "Difference", "Error", "FaultError", "Kernel", "Memory",
           "Note", "Param", "Prediction", "Progress", "Proof", "Range", "Record", "SCHEDULES", "Scalar",
           "ScheduleError", "ScheduleWarning", "Source", "Store", "Tensor", "Trial", "Tuning", "UnavailableError", "Unit",
           "Work", "explain", "flash_attn_fp8_func", "flash_attn_func", "flash_attn_varlen_func", "load", "tune"]
_OF_TORCH = ("flash_attn_fp8_func", "flash_attn_func", "flash_attn_varlen_func")


def _has_torch() -> bool:
    return sys.modules["torch"] is not None if "torch" in sys.modules else find_spec("torch") is not None


if not _has_torch():  # `from schedc import *` takes what is there
    __all__ = [name for name in __all__ if name not in _OF_TORCH]


def explain(code: str) -> Optional[str]:
    """A page about a diagnostic ("R3.release"), or None if there is no such code."""
    return _core.explain(code)


def __dir__() -> List[str]:
    """What users are meant to see; without PyTorch not what needs it, as tools ask for all that is listed."""
    hidden = () if _has_torch() else _OF_TORCH
    return [name for name in sorted({*globals(), *__all__}) if name.startswith("_") or name in __all__ and name not in hidden]


def __getattr__(name: str) -> Any:
    """What needs PyTorch is imported when it is asked for."""
    if name in _OF_TORCH:
        try:
            from . import _attention, _fp8
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise ModuleNotFoundError(f"schedc.{name} is called on PyTorch's tensors, and PyTorch is not installed; schedc.load(…, "
                                      "on='cpu') runs a schedule on NumPy's arrays", name="torch") from None
        return getattr(_fp8 if name == "flash_attn_fp8_func" else _attention, name)
    raise AttributeError(f"module 'schedc' has no attribute '{name}'")
