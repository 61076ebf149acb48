"""What lets a pod fetch the one model that it serves, and nothing else.

Decides the two signatures. A *grant* opens a model version for as long as something uses it (the route looks); it is
given to a pod when the pod is made and is a secret. A *signed path* opens one file for some minutes. Neither is stored:
every control plane with the same key makes and accepts the same ones. Must not know routes or where files are.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable

from amphitrite.dataplane.table.routing_table import Secret

#: How long an address of a file is good for (seconds). A transfer that has begun may take longer.
URL_LIFETIME_S = 600
CONTENT_PATH = "/fetch/v1/content"
_GRANT = re.compile(r"v1\.([0-9a-f]{64})\.([A-Za-z0-9_-]{43})")


class Delivery:
    """``clock``: seconds since the epoch."""

    def __init__(self, key: Secret, clock: Callable[[], float]) -> None:
        self._key, self._clock = key.reveal().encode("utf-8"), clock

    def grant(self, digest: str) -> str:
        """``v1.<digest>.<signature>``; ``digest`` is of a model's manifest."""
        return f"v1.{digest}.{self._sign('grant', digest)}"

    def opens(self, grant: str, digest: str) -> bool:
        """Whether this is the grant for that model. The time that it takes says nothing about the right one."""
        match = _GRANT.fullmatch(grant)
        return match is not None and _same(match[2], self._sign("grant", digest)) and match[1] == digest

    def signed_path(self, digest: str) -> str:
        """Path and query under which the content with this digest can be read until ``URL_LIFETIME_S`` from now."""
        expires = str(int(self._clock()) + URL_LIFETIME_S)
        return f"{CONTENT_PATH}/{digest}?expires={expires}&signature={self._sign('content', digest, expires)}"

    def signed(self, digest: str, expires: str, signature: str) -> bool:
        """Whether these are the parts of a signed path of ours, expired or not."""
        return _same(signature, self._sign("content", digest, expires))

    def expired(self, expires: str) -> bool:
        """``expires``: of a path that is :meth:`signed`."""
        return self._clock() >= int(expires)

    def _sign(self, *parts: str) -> str:
        """No part may contain the separator, so no two lists of parts are signed alike."""
        mac = hmac.new(self._key, "\n".join(parts).encode("utf-8", "surrogateescape"), hashlib.sha256)
        return base64.urlsafe_b64encode(mac.digest()).rstrip(b"=").decode("ascii")


def _same(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), right.encode("ascii"))
