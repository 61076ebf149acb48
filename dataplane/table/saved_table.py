"""The last routing table that was in force, on disk.

Decides the file's form, that only its owner can read it, and that it is never half written. Must
not know who applies it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from amphitrite.dataplane.machine.atomic_files import write_private
from amphitrite.dataplane.table.json_codec import from_json
from amphitrite.dataplane.table.routing_table import RoutingTable
from amphitrite.dataplane.table.text_codec import TableText
from amphitrite.schemas.errors import Error
from amphitrite.schemas.sealed_json import seal, unseal


@dataclass(frozen=True, slots=True)
class SavedTable:
    """``drain_timeout_s``: how long the drain of what ``drained_version`` does not include may
    still take, in seconds."""

    table: RoutingTable
    drained_version: int
    drain_timeout_s: float


def load(path: Path) -> SavedTable | None:
    """The saved table; None: there is no file. Raises Error(LocalFileError) for a file with other
    content."""
    try:
        value = unseal(path.read_text(encoding="utf-8"))
        return SavedTable(from_json(value["table"]), int(value["drained_version"]), float(value["drain_timeout_s"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise Error("LocalFileError", f"not a saved routing table: {path}", target=str(path)) from exc


def save(path: Path, saved: SavedTable, text: TableText) -> None:
    """Replace the file. It holds keys, so its mode is 0600. ``text`` caches the parts of the table
    saved before."""
    rest = json.dumps({"drained_version": saved.drained_version, "drain_timeout_s": saved.drain_timeout_s})
    write_private(path, seal(f'{{"table": {text.whole(saved.table)}, {rest[1:]}'))
