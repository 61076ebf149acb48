"""The reason why an instance exited, from Triton's log.

Decides which lines of Triton's log explain it, how they are shortened, and which line of the user's
Python code they name. Pure: takes text and an exit code, returns a sentence. Must not know
processes or pods.
"""

from __future__ import annotations

import re
import signal

MAX_CHARACTERS = 1000
DEAD_STUB = "a Python process of tritonserver died while loading a model (out of memory?); see the instance's log"

#: The code of a model raised: ``failed to load 'm' version 1: Internal: ValueError: why``.
_RAISED = re.compile(
    r"failed to load '(?P<model>[^']+)' version (?P<version>\d+): "
    r"(?:(?:Unknown|Internal|Not found|Invalid argument|Unavailable|Unsupported|Already exists): )?(?P<why>.*)"
)
#: Of the traceback that follows, innermost first: ``  /a/m/1/model.py(21): initialize``.
_FRAME = re.compile(r"^\s*(?P<file>/[^\n]*\.py)\((?P<line>\d+)\): ", re.MULTILINE)
#: A file that Python cannot parse has no frame: ``SyntaxError: invalid syntax (model.py, line 3)``.
_UNPARSED = re.compile(r"(?P<why>\w+: .*) \((?P<file>[^()/]+\.py), line (?P<line>\d+)\)$")
#: Code that is not the user's, even if a model has the name of a library.
_LIBRARIES = re.compile(r"/(?:site-packages|dist-packages|backends|lib/python3[^/]*)/")
_LOAD_FAILURE = re.compile(r'"(failed to load \'[^\']+\' version \d+: .*)"\s*$', re.MULTILINE)
_POLL_FAILURE = re.compile(r'"(Poll failed for model directory .*)"\s*$', re.MULTILINE)
_FATAL = re.compile(
    r"^(error: .*|.*(?:failed to start (?:HTTP|GRPC) service|error while loading shared libraries).*)$", re.M
)
_ERROR_LINE = re.compile(r'^(?:E\d{4} \S+ \d+ \S+\]|\S+Z E \d+ \S+\]) "?(.*?)"?$', re.MULTILINE)
_PORT_TAKEN = re.compile(
    r"failed to start (?:HTTP|GRPC) service: .*(?:in use|[Bb]ind|[Aa]ddress)|Socket '[^']+' already in use"
)
#: The origin of a backend's Python exception: useful in the log, not in a message.
_ORIGIN = re.compile(r"\s*\n\s*At:\n.*", re.DOTALL)
#: Errors that every Triton logs on a machine without GPUs.
_NOISE = ("CudaDriverHelper", "pinned system memory", "NVML", "DCGM")


def reason(log: str, exit_code: int | None, *, was_ready: bool) -> str:
    """The lines of ``log`` (its end) that explain the exit, otherwise the exit code; at most
    MAX_CHARACTERS.

    ``exit_code``: negative for a signal, as in ``subprocess``; None if unknown. ``was_ready``: the
    instance had loaded its models, so errors about loading are out of date.
    """
    lines: list[str] = []
    if not was_ready and (exit_code is None or exit_code >= 0):
        for patterns in ((_LOAD_FAILURE, _POLL_FAILURE), (_ERROR_LINE,), (_FATAL,)):
            lines = [_clean(m) for pattern in patterns for m in pattern.findall(log)]
            lines = [line for line in dict.fromkeys(lines) if line and not any(n in line for n in _NOISE)]
            if lines:
                break
    text = "; ".join(lines[:5]) or _ending(exit_code)
    return text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - 1] + "…"


def port_taken(log: str) -> bool:
    """Whether Triton exited because another process listens on its port."""
    return bool(_PORT_TAKEN.search(log))


def _clean(message: str) -> str:
    """The message on one line, without the traceback. Triton escapes line ends inside a message.

    If a line of the user's code raised: ``m/1/model.py:21: ValueError: why``.
    """
    text = message.replace("\\n", "\n").replace("\\'", "'").replace('\\"', '"').rstrip()
    words = " ".join(_ORIGIN.sub("", text).split())
    raised, origin = _RAISED.match(words), _ORIGIN.search(text)
    if raised is None:
        return words
    place, why = _place(raised["model"], origin[0] if origin is not None else ""), raised["why"]
    if place is None and (unparsed := _UNPARSED.match(why)):
        folder = f"{raised['model']}/{raised['version']}/" if unparsed["file"] == "model.py" else ""
        place, why = f"{folder}{unparsed['file']}:{unparsed['line']}", unparsed["why"]
    return words if place is None else f"{place}: {why}"


def _place(model: str, traceback: str) -> str | None:
    """``m/1/model.py:21``: the innermost line of the user's code; None if there is none."""
    for frame in _FRAME.finditer(traceback):
        _, within, relative = frame["file"].rpartition(f"/{model}/")
        if within and not _LIBRARIES.search(frame["file"]):
            return f"{model}/{relative}:{frame['line']}"
    return None


def _ending(exit_code: int | None) -> str:
    if exit_code is None:
        return "tritonserver exited; the exit code is unknown, because another control plane started it"
    if exit_code < 0:
        try:
            name = signal.Signals(-exit_code).name
        except ValueError:
            name = f"signal {-exit_code}"
        return f"tritonserver was killed by {name}"
    return f"tritonserver exited with code {exit_code}"
