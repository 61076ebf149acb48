"""Parameter types for routes.

Decides how a route gets the services. Must not know what they do.
"""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, Request

from amphitrite.controlplane.services.services import Services


def _services(request: Request) -> Services:
    return cast(Services, request.app.state.services)


#: The parameter type for the services.
Here = Annotated[Services, Depends(_services)]
