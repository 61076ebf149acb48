"""What somebody may show who wants to be let in. All but ``GOOD`` are refused, by each endpoint and
protocol."""

from __future__ import annotations

import time
from collections.abc import Callable

from .agents import KEY
from .minting import mint
from .rule_table import REVOKED_KEY, REVOKED_KID

#: name -> (endpoint, ``authorization``; None: no such header). The last ones are good, and open
#: scoring only.
CREDENTIALS: dict[str, tuple[str, Callable[[], str | None]]] = {
    "none": ("images", lambda: None),
    "empty": ("images", lambda: ""),
    "wrong": ("images", lambda: "Bearer nope"),
    "malformed": ("images", lambda: f"Bearer\t{KEY}"),
    "basic": ("images", lambda: "Basic cHJpbWFyeS1rZXk6"),
    "no scheme": ("images", lambda: KEY),
    "another endpoint's": ("images", lambda: "Bearer other-key"),
    "no key is left": ("closed", lambda: f"Bearer {KEY}"),
    "no token": ("tokens", lambda: None),
    "expired token": ("tokens", lambda: f"Bearer {mint(exp=int(time.time()) - 3600)}"),
    "another endpoint's token": ("tokens", lambda: f"Bearer {mint('other-tokens')}"),
    "malformed token": ("tokens", lambda: "Bearer a.b.c"),
    "revoked": ("images", lambda: f"Bearer {REVOKED_KEY}"),
    "revoked token": ("tokens", lambda: f"Bearer {mint(kid=REVOKED_KID)}"),
    "key": ("images", lambda: f"Bearer {KEY}"),
    "token": ("tokens", lambda: f"Bearer {mint()}"),
}

#: Those that are let in.
GOOD = ("key", "token")
#: One for each decision of the proxy about a request: it shows no key, a key that is not the
#: endpoint's, no token, a token that is not accepted, or what is good.
DECISIONS = ("none", "wrong", "no token", "expired token", *GOOD)
