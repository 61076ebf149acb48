"""The seed: the table that a new proxy begins with when no control plane answers.

It fits a Kubernetes Secret. Decides the form of a seed (gzip of the table's JSON; the same table
gives the same bytes), its size, and which of a saved table and a seed is newer. Must not know who
keeps the Secret or how it reaches the proxy's file system.
"""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

from amphitrite.dataplane.table.json_codec import from_json, to_json
from amphitrite.dataplane.table.routing_table import RoutingTable
from amphitrite.schemas.errors import Error

#: Kubernetes refuses a Secret whose values have more bytes than this (MaxSecretSize of
#: k8s.io/api/core/v1).
MAX_BYTES = 1024 * 1024
#: The most bytes of a decompressed seed. A table is about twenty times its seed.
_MAX_UNFOLDED = 128 * 1024 * 1024


def encode_seed(table: RoutingTable) -> bytes:
    """The seed of ``table``; it holds keys. Raises Error(LimitExceeded) above :data:`MAX_BYTES`.

    1,000 endpoints of two deployments, each with two keys of 32 characters, take about a tenth of
    that.
    """
    text = json.dumps(to_json(table), separators=(",", ":"), sort_keys=True)
    seed = gzip.compress(text.encode(), mtime=0)
    if len(seed) > MAX_BYTES:
        raise Error(
            "LimitExceeded",
            f"the routing table of {len(table.routes)} endpoints has {len(seed)} bytes compressed; a Secret holds at "
            f"most {MAX_BYTES}",
            hint="running proxies keep their own copy and go on. A proxy that starts while no control plane "
            "answers has an older table or none. Keep the proxies' state on a volume, or spread the endpoints over two "
            "installations",
        )
    return seed


def decode_seed(data: bytes) -> RoutingTable:
    """The inverse of :func:`encode_seed`. Raises Error(LocalFileError) for anything else, and for a
    seed that is cut off."""
    unfold = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        text = unfold.decompress(data, _MAX_UNFOLDED)
        if not unfold.eof:
            raise ValueError("the seed is cut off or too large")
        return from_json(json.loads(text))
    except (zlib.error, ValueError, KeyError, TypeError, AttributeError) as exc:
        # The text of a JSON error may quote the input, and so a key.
        raise Error("LocalFileError", f"not a seed: {type(exc).__name__}") from exc


def load_seed(path: Path) -> RoutingTable | None:
    """The table of a seed file; None: there is no file (yet). Raises Error(LocalFileError)."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise Error("LocalFileError", f"cannot read the seed {path}: {exc.strerror}", target=str(path)) from exc
    try:
        return decode_seed(data)
    except Error as error:
        raise Error(error.code, f"{path}: {error.message}", target=str(path)) from error


def newer(seed: RoutingTable | None, saved: RoutingTable | None) -> RoutingTable | None:
    """``seed`` if it is newer than the table that this proxy had in force, else None."""
    if seed is None or (saved is not None and saved.version >= seed.version):
        return None
    return seed
