"""Writes docs/reference/openapi.json: the REST API as the routes and their table of operations say.

Decides the file's form. Must not add facts. Run it after each change of a route:
``python docs/openapi_reference.py``.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from amphitrite.controlplane.api import openapi
from amphitrite.controlplane.process.app import create_app

FILE = Path(__file__).parent / "reference" / "openapi.json"


def text() -> str:
    """The file's content. The app is only described: none of its routes runs, so none of the
    services is needed."""
    services: Any = SimpleNamespace(credentials=None)
    return json.dumps(openapi.document(create_app(services)), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
