"""Shared access signatures: what opens one container of blobs for an hour or so, without any other credential.

Decides the signature and how long it is good for. Its parameters have Azure's names, as Azure's clients pass only those
on; it means nothing to anybody but this server. Not stored: every control plane with the same key makes and accepts the
same ones. Must not know routes or where files are.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from urllib.parse import urlencode

from amphitrite.dataplane.table.routing_table import Secret
from amphitrite.schemas.errors import Error

#: How long a signature is good for where nobody asks for longer (seconds).
LIFETIME_S = 3600
#: Create, read, write and list; of a container.
_PERMISSIONS, _RESOURCE, _VERSION = "rcwl", "c", "2024-01-01"
_TIME = "%Y-%m-%dT%H:%M:%SZ"


class ContainerSignatures:
    """``clock``: seconds since the epoch."""

    def __init__(self, key: Secret, clock: Callable[[], float]) -> None:
        self._key, self._clock = key.reveal().encode("utf-8"), clock

    def query(self, container: str, lifetime_s: int = LIFETIME_S) -> str:
        """The query string that opens ``container`` until ``lifetime_s`` from now. A secret."""
        expires = datetime.fromtimestamp(int(self._clock()) + lifetime_s, timezone.utc).strftime(_TIME)
        named = {"sv": _VERSION, "se": expires, "sr": _RESOURCE, "sp": _PERMISSIONS}
        return urlencode({**named, "sig": self._sign(container, *named.values())})

    def check(self, container: str, query: Mapping[str, str]) -> None:
        """Raises Error AuthenticationFailed (not our signature for it), AuthorizationFailed (expired)."""
        named = [query.get(name, "") for name in ("sv", "se", "sr", "sp")]
        right = self._sign(container, *named)
        if not hmac.compare_digest(query.get("sig", "").encode("utf-8", "surrogateescape"), right.encode("ascii")):
            raise Error("AuthenticationFailed", "the signature of this address is not ours", target=container)
        expires = datetime.strptime(named[1], _TIME).replace(tzinfo=timezone.utc)
        if self._clock() >= expires.timestamp():
            hint = "whoever gave it gives another: startPendingUpload, listSecrets"
            raise Error("AuthorizationFailed", "this address has expired", target=container, hint=hint)

    def _sign(self, *parts: str) -> str:
        """Unlike any other signature with this key by its first line."""
        text = "\n".join(("container", *(part.replace("\n", " ") for part in parts)))
        mac = hmac.new(self._key, text.encode("utf-8", "surrogateescape"), hashlib.sha256)
        return base64.b64encode(mac.digest()).decode("ascii")
