"""Fetch grants: what lets a pod download the one model that it serves, and nothing else.

Decides the two signatures. A *grant* authorizes the model version of one workload until a time, and
for as long as that workload exists, which the route checks. Pods get it in a Secret, where it is
replaced before it ends. A *signed path* authorizes one file for some minutes. Neither is stored:
every control plane with the same key creates and accepts the same ones. Must not know routes or
where files are.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass

from amphitrite.dataplane.table.routing_table import Secret

#: Seconds for which the URL of a file is valid. A transfer that has begun may take longer.
URL_LIFETIME_S = 600
CONTENT_PATH = "/fetch/v1/content"
#: A grant is replaced this often, in seconds, and is valid for one to two such periods: pods of a
#: cluster that the control plane cannot reach for a week can still fetch.
GRANT_PERIOD_S = 7 * 24 * 3600
_GRANT = re.compile(
    r"v2\.(?P<ends>[0-9]{1,12})\.(?P<workload>[a-z0-9-]{1,253})\.(?P<digest>[0-9a-f]{64})\.(?P<by>[A-Za-z0-9_-]{43})"
)
#: In the pod templates of releases until 0.2: of one model version, without an end.
_EARLIER = re.compile(r"v1\.(?P<digest>[0-9a-f]{64})\.(?P<by>[A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class Grant:
    """What a signed grant authorizes. ``ends``: seconds since the epoch. ``workload`` and ``ends``
    are None in a grant of an earlier release."""

    digest: str
    workload: str | None = None
    ends: int | None = None


class Delivery:
    """Creates and verifies grants and signed paths. ``clock``: seconds since the epoch."""

    def __init__(self, key: Secret, clock: Callable[[], float]) -> None:
        self._key, self._clock = key.reveal().encode("utf-8"), clock

    def grant(self, workload: str, digest: str) -> str:
        """``v2.<end>.<workload>.<digest>.<signature>``: the same text for a whole period.

        ``workload``: a workload's name. ``digest``: of its model's manifest. Workloads are in step
        with their names, so that not all of their grants are replaced at once.
        """
        ahead = int(hashlib.sha256(workload.encode()).hexdigest()[:8], 16) % GRANT_PERIOD_S
        periods = (int(self._clock()) + ahead) // GRANT_PERIOD_S
        ends = str((periods + 2) * GRANT_PERIOD_S - ahead)
        return f"v2.{ends}.{workload}.{digest}.{self._sign('grant', ends, workload, digest)}"

    def read_grant(self, text: str) -> Grant | None:
        """What ``text`` authorizes, None if it is no grant that was signed with this key. Compares
        in constant time."""
        if match := _GRANT.fullmatch(text):
            ends, workload, digest, signature = match.groups()
            signed = _same(signature, self._sign("grant", ends, workload, digest))
            return Grant(digest, workload, int(ends)) if signed else None
        if match := _EARLIER.fullmatch(text):
            digest, signature = match.groups()
            return Grant(digest) if _same(signature, self._sign("grant", digest)) else None
        return None

    def has_ended(self, grant: Grant) -> bool:
        return grant.ends is not None and self._clock() >= grant.ends

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
