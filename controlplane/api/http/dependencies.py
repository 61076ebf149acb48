"""What a route may ask for by the type of a parameter.

Decides how the services reach a route. Must not know what they do.
"""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, Request

from amphitrite.controlplane.services.services import Services


def _services(request: Request) -> Services:
    return cast(Services, request.app.state.services)


#: The parameter type by which a route asks for the services.
Here = Annotated[Services, Depends(_services)]
