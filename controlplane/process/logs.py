"""The control plane's log: one JSON object on each line.

Decides the format of a line and where lines are written. Must not know what is logged. Callers pass
structured fields as ``extra={"fields": {...}}``, and never a credential, a header or a body.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime, timezone
from logging.handlers import RotatingFileHandler
from pathlib import Path

from amphitrite.schemas import printable_text

MAX_BYTES = 10 * 1024 * 1024
BACKUP_COUNT = 3
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class JsonFormatter(logging.Formatter):
    """``{"time", "level", "logger", "message", ...fields, "traceback"?}``; time in UTC with
    milliseconds."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, timezone.utc)
        line: dict[str, object] = {
            "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        # JSON escapes what ends a line, but not all that moves a cursor.
        return printable_text.one_line(json.dumps(line, ensure_ascii=False, default=str))


class TextFormatter(logging.Formatter):
    """For people: ``time level logger: message name=value ...``, with the traceback below. Whatever
    the message contains, it is one line."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
        fields = "".join(f" {name}={value}" for name, value in getattr(record, "fields", {}).items())
        message = printable_text.one_line(f"{record.getMessage()}{fields}")
        line = f"{time[:23]}Z {record.levelname.lower()} {record.name}: {message}"
        if not record.exc_info:
            return line
        # Indented, because the text of an exception may have lines too.
        traceback = printable_text.lines(self.formatException(record.exc_info))
        return "\n  ".join([line, *traceback.splitlines()])


def configure(path: Path | None, level: str = "info", *, text: bool = False) -> None:
    """Writes all records to ``path`` (rotated at 10 MiB, three backups), or to stdout if it is
    None, where a container's log is read. Replaces existing handlers.

    ``level``: debug, info, warning or error. With debug, libraries still log from info on.
    """
    handler: logging.Handler
    if path is None:
        handler = logging.StreamHandler(sys.stdout)
    else:
        handler = RotatingFileHandler(path, maxBytes=MAX_BYTES, backupCount=BACKUP_COUNT, encoding="utf-8", delay=True)
    handler.setFormatter(TextFormatter() if text else JsonFormatter())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    number = _LEVELS[level]
    root.setLevel(max(number, logging.INFO))
    logging.getLogger("amphitrite").setLevel(number)
