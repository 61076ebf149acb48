"""Lines of the server's logs: what each says, and how it reads.

Decides the text of a line (time, level, log, message and other fields) and its form as JSON. Must
not know files. The control plane and the agent write JSON objects, Envoy its own format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from amphitrite.schemas.printable_text import one_line

#: Envoy's default format: ``[time][thread][level][logger] [file:line] message``.
_ENVOY = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3})\]\[\d+\]\[(\w+)\]\[([\w.]+)\] (?:\[[^\]]*\] )?(.*)")
_SHOWN = frozenset({"time", "level", "logger", "message", "traceback"})


@dataclass(frozen=True, slots=True)
class LogLine:
    """``log``: whose line it is. ``at``: seconds since the epoch; None without a time of its own.

    ``values``: its fields, such as time, level and message.
    """

    log: str
    at: float | None
    values: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """One JSON object, with the name of the log."""
        return one_line(json.dumps({"log": self.log, **self.values}, ensure_ascii=False))

    def to_text(self) -> str:
        """``2026-11-22 22:10:48.123 info controlplane: message name=value``, in UTC."""
        time = "" if self.at is None else f"{_utc(self.at):%Y-%m-%d %H:%M:%S.%f}"[:23]
        message = one_line(str(self.values.get("message", "")))
        # The line of a request has its method, path and status in the message too.
        more = {name: value for name, value in self.values.items() if name not in _SHOWN and value is not None}
        texts = {one_line(name): one_line(str(value)) for name, value in more.items()}
        fields = "".join(f" {name}={value}" for name, value in texts.items() if value not in message)
        begin = " ".join(part for part in (time, str(self.values.get("level", "")), f"{self.log}:") if part)
        traceback = "".join(f"\n  {one_line(line)}" for line in str(self.values.get("traceback", "")).splitlines())
        return f"{one_line(begin)} {message}{fields}{traceback}"


def parse(log: str, line: str) -> LogLine:
    """A line of the log with this name. A line in no known form is a message as a whole."""
    if match := _ENVOY.fullmatch(line):
        # Envoy writes local time.
        at = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S.%f").timestamp()
        time = f"{_utc(at).isoformat(timespec='milliseconds')[:23]}Z"
        return LogLine(log, at, {"time": time, "level": match[2], "logger": match[3], "message": match[4]})
    try:
        values = json.loads(line)
        at = datetime.fromisoformat(str(values["time"]).replace("Z", "+00:00")).timestamp()
    except (ValueError, KeyError, TypeError):
        return LogLine(log, None, {"message": line})
    return LogLine(log, at, values)


def in_order(lines: Iterable[LogLine], since: float | None) -> list[LogLine]:
    """The lines by time, without those before ``since`` (seconds since the epoch).

    A line without a time stays behind the one before it in its log.
    """
    latest: dict[str, float] = {}
    timed = []
    for line in lines:
        at = latest[line.log] = line.at if line.at is not None else latest.get(line.log, 0.0)
        if since is None or at >= since:
            timed.append((at, line))
    return [line for _, line in sorted(timed, key=lambda one: one[0])]


def _utc(at: float) -> datetime:
    return datetime.fromtimestamp(at, timezone.utc)
