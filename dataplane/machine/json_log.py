"""The agent's own log: one JSON object on each line of stderr.

Decides its form. Must not be given credentials: values are printed as they are.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime, timezone
from typing import Literal


def log(level: Literal["info", "warning", "error"], message: str, **values: object) -> None:
    """``values`` should be JSON values. Anything else is printed as text."""
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    line = json.dumps({"time": now, "level": level, "message": message, **values}, default=str)
    # Text and line end in one write: two threads must not write into each other's lines.
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
