"""What the library reports, as Python has it: errors are exceptions, warnings are warnings, both with their ranges."""
from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_EINPUT, _EFAULT, _ENOMEM, _EUNAVAIL = 1, 2, 3, 8  # schedc_status


@dataclass(frozen=True)
class Range:
    """A part of a source text: lines and columns from 1, columns and offset in bytes, the end exclusive."""
    offset: int
    length: int
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Note:
    """Another place that a diagnostic points at: the other end of a conflict."""
    range: Range
    text: str


@dataclass(frozen=True)
class Diagnostic:
    """One report. `code` is stable ("R3.release"), and `schedc.explain(code)` is a page about it."""
    severity: str  # "error" or "warning"
    code: str
    file: str  # the name that the source was given
    range: Range
    text: str  # one sentence
    help: Optional[str]  # what to do
    notes: Tuple[Note, ...]
    rendered: str  # the whole report as the command line shows it, with source lines and carets

    def __str__(self) -> str:
        return self.rendered.rstrip("\n")


class Error(Exception):
    """A call of the library failed. `status` names how ("SCHEDC_EIO"); `diagnostics` may say more."""

    def __init__(self, status: str, text: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__("\n".join(str(d) for d in diagnostics) or text)
        self.status = status
        self.diagnostics = tuple(diagnostics)
        self._text = text

    def __reduce__(self) -> Tuple[object, ...]:  # so that a pool of processes hands it on
        return type(self), (self.status, self._text, self.diagnostics)


class ScheduleError(Error):
    """The schedule, a param or a tensor is at fault: `diagnostics` has at least one report."""


class FaultError(ScheduleError):
    """A run met a race or a deadlock, or a wait of a kernel loaded with `debug_waits` took too long."""


class UnavailableError(Error):
    """This machine lacks something: a CUDA driver, NVRTC, a Hopper GPU."""


class ScheduleWarning(UserWarning):
    """A warning about a schedule; `diagnostic` is the report."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(str(diagnostic))
        self.diagnostic = diagnostic


_RawRange = Tuple[int, int, int, int, int, int]
_Raw = Tuple[int, str, str, _RawRange, str, Optional[str], List[Tuple[_RawRange, str]], str]


def _diagnostic(raw: _Raw) -> Diagnostic:
    severity, code, file, where, text, help_, notes, rendered = raw
    return Diagnostic("warning" if severity else "error", code, file, Range(*where), text, help_,
                      tuple(Note(Range(*at), said) for at, said in notes), rendered)


def _caller() -> int:
    """How many frames above `report` the first one outside of this package is, as `stacklevel` counts."""
    level = 2
    frame = sys._getframe(2)
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back:
        frame = frame.f_back
        level += 1
    return level


def report(status: int, name: str, text: str, raw: List[_Raw]) -> None:
    """Called by the extension module when a call has ended that reported something, or failed."""
    diagnostics = [_diagnostic(one) for one in raw]
    for d in diagnostics:
        if d.severity == "warning":
            warnings.warn(ScheduleWarning(d), stacklevel=_caller())
    errors = [d for d in diagnostics if d.severity == "error"]
    if status == _ENOMEM:
        raise MemoryError(text)
    if status:
        kind = {_EINPUT: ScheduleError, _EFAULT: FaultError, _EUNAVAIL: UnavailableError}.get(status, Error)
        raise kind(name, text, errors)
