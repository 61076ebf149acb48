"""Shared access signatures, which authorize access to one blob container for about an hour.

Decides the signature and its lifetime. The parameters have Azure's names, because Azure's clients
pass on only those; only this server can verify it. Not stored: every control plane with the same
key creates and accepts the same ones. Must not know routes or where files are.
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

#: Default lifetime of a signature, in seconds.
LIFETIME_S = 3600
#: Azure's values: create, read, write and list; a container; a service version.
_PERMISSIONS, _RESOURCE, _VERSION = "rcwl", "c", "2024-01-01"
_TIME = "%Y-%m-%dT%H:%M:%SZ"


class ContainerSignatures:
    """``clock``: seconds since the epoch."""

    def __init__(self, key: Secret, clock: Callable[[], float]) -> None:
        self._key, self._clock = key.reveal().encode("utf-8"), clock

    def query(self, container: str, lifetime_s: int = LIFETIME_S) -> str:
        """The query string that authorizes access to ``container`` for ``lifetime_s``. It is a
        secret."""
        expires = datetime.fromtimestamp(int(self._clock()) + lifetime_s, timezone.utc).strftime(_TIME)
        parameters = {"sv": _VERSION, "se": expires, "sr": _RESOURCE, "sp": _PERMISSIONS}
        return urlencode({**parameters, "sig": self._sign(container, *parameters.values())})

    def check(self, container: str, query: Mapping[str, str]) -> None:
        """Raises Error AuthenticationFailed (not signed by this server for it) or
        AuthorizationFailed (expired)."""
        parameters = [query.get(name, "") for name in ("sv", "se", "sr", "sp")]
        right = self._sign(container, *parameters)
        if not hmac.compare_digest(query.get("sig", "").encode("utf-8", "surrogateescape"), right.encode("ascii")):
            raise Error("AuthenticationFailed", "the signature of this URL is not valid", target=container)
        expires = datetime.strptime(parameters[1], _TIME).replace(tzinfo=timezone.utc)
        if self._clock() >= expires.timestamp():
            hint = "request a new URL with startPendingUpload or listSecrets"
            raise Error("AuthorizationFailed", "this URL has expired", target=container, hint=hint)

    def _sign(self, *parts: str) -> str:
        """Its first line distinguishes it from all other signatures with this key."""
        text = "\n".join(("container", *(part.replace("\n", " ") for part in parts)))
        mac = hmac.new(self._key, text.encode("utf-8", "surrogateescape"), hashlib.sha256)
        return base64.b64encode(mac.digest()).decode("ascii")
