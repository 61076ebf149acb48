"""The settings of scoring tokens: which issuer is accepted, and how long tokens are valid.

Decides names, defaults and ranges of these settings. Must not know how tokens are made or verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from amphitrite.controlplane.core.planning.key_rotation import Schedule
from amphitrite.controlplane.settings import setting_values as values
from amphitrite.schemas.errors import Error

#: The resource that Azure's SDK and CLI request a token for to score (the scope without
#: ``/.default``).
SCORING_RESOURCE = "https://ml.azure.com"
_HOUR, _DAY = 3600, 24 * 3600
_LIFETIME_S = range(5 * 60, 30 * _DAY + 1)
_ROTATION_S = range(_HOUR, 365 * _DAY + 1)


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """``lifetime_s``: how long a token of this server is valid. ``rotation_s``: how long a key
    signs. ``issuer``: the OpenID Connect issuer for endpoints with auth mode aad_token, None for
    our own identity endpoint. ``audiences``: the accepted audiences of its tokens."""

    lifetime_s: int = 12 * _HOUR
    rotation_s: int = 30 * _DAY
    issuer: str | None = None
    audiences: tuple[str, ...] = (SCORING_RESOURCE,)

    @property
    def schedule(self) -> Schedule:
        return Schedule(rotation_s=self.rotation_s, lifetime_s=self.lifetime_s)


def read(environ: Mapping[str, str]) -> TokenSettings:
    """Variables: ``ML_SCORING_TOKEN_LIFETIME_S``, ``ML_SCORING_TOKEN_ROTATION_S``,
    ``ML_SCORING_ISSUER``, ``ML_SCORING_AUDIENCES``.

    Raises Error("BadArgument") that names the setting and what is allowed.
    """
    default = TokenSettings()
    return TokenSettings(
        lifetime_s=_within("ML_SCORING_TOKEN_LIFETIME_S", environ, default.lifetime_s, _LIFETIME_S),
        rotation_s=_within("ML_SCORING_TOKEN_ROTATION_S", environ, default.rotation_s, _ROTATION_S),
        issuer=_issuer(environ),
        audiences=_audiences(environ) or default.audiences,
    )


def _within(name: str, environ: Mapping[str, str], default: int, allowed: range) -> int:
    value = values.integer(name, environ.get(name), default)
    if value not in allowed:
        message = f"{name} is {value}; allowed: {allowed.start} to {allowed.stop - 1} (seconds)"
        raise Error("BadArgument", message, target=name)
    return value


def _issuer(environ: Mapping[str, str]) -> str | None:
    """Exactly as in tokens: even a final slash counts."""
    text = environ.get("ML_SCORING_ISSUER") or None
    if text is not None:
        values.https_url("ML_SCORING_ISSUER", text)
    return text


def _audiences(environ: Mapping[str, str]) -> tuple[str, ...]:
    audiences = tuple(sorted(set(values.names(environ.get("ML_SCORING_AUDIENCES")))))
    if audiences and not environ.get("ML_SCORING_ISSUER"):
        message = "ML_SCORING_AUDIENCES is set, but ML_SCORING_ISSUER is not"
        raise Error("BadArgument", message, target="ML_SCORING_AUDIENCES")
    return audiences
