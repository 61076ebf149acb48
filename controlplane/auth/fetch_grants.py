"""Fetch grants: what lets a pod download the one model that it serves, and nothing else.

Decides the two signatures. A *grant* authorizes one model version for as long as a deployment uses
it, which the route checks. A pod gets it when it is created; it is a secret. A *signed path*
authorizes one file for some minutes. Neither is stored: every control plane with the same key
creates and accepts the same ones. Must not know routes or where files are.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable

from amphitrite.dataplane.table.routing_table import Secret

#: Seconds for which the URL of a file is valid. A transfer that has begun may take longer.
URL_LIFETIME_S = 600
CONTENT_PATH = "/fetch/v1/content"
_GRANT = re.compile(r"v1\.([0-9a-f]{64})\.([A-Za-z0-9_-]{43})")


class Delivery:
    """Creates and verifies grants and signed paths. ``clock``: seconds since the epoch."""

    def __init__(self, key: Secret, clock: Callable[[], float]) -> None:
        self._key, self._clock = key.reveal().encode("utf-8"), clock

    def grant(self, digest: str) -> str:
        """``v1.<digest>.<signature>``. ``digest``: of a model's manifest."""
        return f"v1.{digest}.{self._sign('grant', digest)}"

    def is_grant_for(self, grant: str, digest: str) -> bool:
        """Whether this is the grant for that model. Compares in constant time."""
        match = _GRANT.fullmatch(grant)
        return match is not None and _same(match[2], self._sign("grant", digest)) and match[1] == digest

    def signed_path(self, digest: str) -> str:
        """Path and query that authorize reading the content with this digest for
        ``URL_LIFETIME_S``."""
        expires = str(int(self._clock()) + URL_LIFETIME_S)
        return f"{CONTENT_PATH}/{digest}?expires={expires}&signature={self._sign('content', digest, expires)}"

    def is_signed(self, digest: str, expires: str, signature: str) -> bool:
        """Whether these are the parts of a path signed with this key, expired or not."""
        return _same(signature, self._sign("content", digest, expires))

    def is_expired(self, expires: str) -> bool:
        """``expires``: of a path for which :meth:`is_signed` is true."""
        return self._clock() >= int(expires)

    def _sign(self, *parts: str) -> str:
        """No part may contain the separator, so that no two lists of parts have the same
        signature."""
        mac = hmac.new(self._key, "\n".join(parts).encode("utf-8", "surrogateescape"), hashlib.sha256)
        return base64.urlsafe_b64encode(mac.digest()).rstrip(b"=").decode("ascii")


def _same(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), right.encode("ascii"))
