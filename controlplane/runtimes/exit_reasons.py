"""Why an instance ended, in the server's own words.

Decides which lines of Triton's log tell it and how they are shortened. Pure: text and an exit code in, a sentence out.
"""

from __future__ import annotations

import re
import signal

MAX_CHARACTERS = 1000
DEAD_STUB = "a Python process of tritonserver died while it loaded a model (out of memory?); the log says more"

_LOAD_FAILURE = re.compile(r'"(failed to load \'[^\']+\' version \d+: .*)"\s*$', re.MULTILINE)
_POLL_FAILURE = re.compile(r'"(Poll failed for model directory .*)"\s*$', re.MULTILINE)
_FATAL = re.compile(
    r"^(error: .*|.*(?:failed to start (?:HTTP|GRPC) service|error while loading shared libraries).*)$", re.M
)
_ERROR_LINE = re.compile(r'^(?:E\d{4} \S+ \d+ \S+\]|\S+Z E \d+ \S+\]) "?(.*?)"?$', re.MULTILINE)
_PORT_TAKEN = re.compile(
    r"failed to start (?:HTTP|GRPC) service: .*(?:in use|[Bb]ind|[Aa]ddress)|Socket '[^']+' already in use"
)
#: Where a Python exception of a backend came from: of use in the log, not in a message.
_ORIGIN = re.compile(r"\s*\n\s*At:\n.*", re.DOTALL)
#: Errors that every Triton logs on a machine without a GPU.
_NOISE = ("CudaDriverHelper", "pinned system memory", "NVML", "DCGM")


def reason(log: str, exit_code: int | None, *, was_ready: bool) -> str:
    """The most telling lines of ``log`` (its end), else what the exit code says; at most MAX_CHARACTERS.

    A negative ``exit_code`` is a signal, as in ``subprocess``; None: unknown. ``was_ready``: then what the log says
    about loading is history.
    """
    found: list[str] = []
    if not was_ready and (exit_code is None or exit_code >= 0):
        for patterns in ((_LOAD_FAILURE, _POLL_FAILURE), (_ERROR_LINE,), (_FATAL,)):
            found = [_clean(m) for pattern in patterns for m in pattern.findall(log)]
            found = [line for line in dict.fromkeys(found) if line and not any(n in line for n in _NOISE)]
            if found:
                break
    text = "; ".join(found[:5]) or _ending(exit_code)
    return text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - 1] + "…"


def port_taken(log: str) -> bool:
    """Whether Triton ended because another process listens on the port that was chosen for it."""
    return bool(_PORT_TAKEN.search(log))


def _clean(message: str) -> str:
    """One line without the traceback. Triton writes the line ends inside of a message as a backslash and an n."""
    text = _ORIGIN.sub("", message.replace("\\n", "\n").rstrip())
    return " ".join(text.replace("\\'", "'").replace('\\"', '"').split())


def _ending(exit_code: int | None) -> str:
    if exit_code is None:
        return "tritonserver ended; its exit code is not known, because another control plane had started it"
    if exit_code < 0:
        try:
            name = signal.Signals(-exit_code).name
        except ValueError:
            name = f"signal {-exit_code}"
        return f"tritonserver was killed by {name}"
    return f"tritonserver ended with exit code {exit_code}"
