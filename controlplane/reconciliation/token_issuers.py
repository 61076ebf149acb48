"""The issuers of valid scoring tokens in each pass: this server with its keys, and the configured
issuer.

Decides the order: a key is in the database before any proxy gets it. Must not know when a key is
due (``core.planning.key_rotation``) or how the configured issuer's keys are fetched
(``auth.oidc_keys``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from amphitrite.controlplane.auth import scoring_tokens
from amphitrite.controlplane.core.planning import key_rotation
from amphitrite.controlplane.settings.token_settings import TokenSettings
from amphitrite.controlplane.store.state.store import Store
from amphitrite.dataplane.table.routing_table import TokenIssuer

log = logging.getLogger(__name__)


class Issuers:
    """``fetched``: the keys of the configured issuer (JWKS), None if they have not been fetched in
    this term."""

    def __init__(self, store: Store, settings: TokenSettings, fetched: Callable[[], str | None]) -> None:
        self._store, self._settings, self._fetched = store, settings, fetched

    def __call__(self, published: Iterable[TokenIssuer], now: float) -> tuple[TokenIssuer, ...]:
        """The issuers for the next table. ``published``: those of the last one. Only the leader may
        call it, because it writes."""
        schedule, keys = self._settings.schedule, self._store.signing_keys()
        added = (scoring_tokens.make_key(now),) if key_rotation.rotation_due(keys, schedule, now) else ()
        expired = key_rotation.expired_keys(keys, schedule, now)
        if added or expired:
            self._store.change_signing_keys(added, expired)
            for verb, some in (("added", added), ("removed", expired)):
                for one in some:
                    log.info("%s signing key %s", verb, one.id)
            keys = self._store.signing_keys()
        own = scoring_tokens.issuers(keys, identity=self._settings.issuer is None)
        external = _external_issuer(self._settings, self._fetched(), published)
        return tuple(sorted((*own, *external), key=lambda one: one.auth))


def _external_issuer(
    settings: TokenSettings, jwks: str | None, published: Iterable[TokenIssuer]
) -> tuple[TokenIssuer, ...]:
    """The configured issuer with its newest keys, or with the last published ones while it does not
    answer."""
    if settings.issuer is None:
        return ()
    if jwks is not None:
        return (TokenIssuer("aad_token", settings.issuer, settings.audiences, jwks),)
    who = (settings.issuer, settings.audiences)
    return tuple(one for one in published if one.auth == "aad_token" and (one.issuer, one.audiences) == who)
