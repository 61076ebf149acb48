"""Whose tokens scoring accepts, and how long ours count.

Decides names, defaults and ranges of these settings. Must not know how tokens are made or verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from amphitrite.controlplane.core.planning.key_rotation import Schedule
from amphitrite.controlplane.settings import setting_values as values
from amphitrite.schemas.errors import Error

#: What Azure's SDK and command line ask a token for, to score (the scope less ``/.default``).
SCORING_RESOURCE = "https://ml.azure.com"
_HOUR, _DAY = 3600, 24 * 3600
_LIFETIME_S = range(5 * 60, 30 * _DAY + 1)
_ROTATION_S = range(_HOUR, 365 * _DAY + 1)


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """``lifetime_s``: of a token of ours; ``rotation_s``: how long one of our keys signs. ``issuer``: the OpenID
    Connect issuer whose tokens open endpoints of auth mode aad_token, None for the identity endpoint of our own;
    ``audiences``: whom such a token may be meant for."""

    lifetime_s: int = 12 * _HOUR
    rotation_s: int = 30 * _DAY
    issuer: str | None = None
    audiences: tuple[str, ...] = (SCORING_RESOURCE,)

    @property
    def schedule(self) -> Schedule:
        return Schedule(rotation_s=self.rotation_s, lifetime_s=self.lifetime_s)


def read(environ: Mapping[str, str]) -> TokenSettings:
    """Variables: ``ML_SCORING_TOKEN_LIFETIME_S``, ``ML_SCORING_TOKEN_ROTATION_S``, ``ML_SCORING_ISSUER``,
    ``ML_SCORING_AUDIENCES``. Raises Error("BadArgument") that names the setting and what is allowed."""
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
    """As it is in tokens, to the letter: also a slash at its end counts."""
    text = environ.get("ML_SCORING_ISSUER") or None
    if text is not None:
        values.https("ML_SCORING_ISSUER", text)
    return text


def _audiences(environ: Mapping[str, str]) -> tuple[str, ...]:
    found = tuple(sorted(set(values.names(environ.get("ML_SCORING_AUDIENCES")))))
    if found and not environ.get("ML_SCORING_ISSUER"):
        message = "ML_SCORING_AUDIENCES says whom tokens of ML_SCORING_ISSUER are meant for, which is not set"
        raise Error("BadArgument", message, target="ML_SCORING_AUDIENCES")
    return found
