"""The time until a change reaches clients: an answer comes from the other deployment.

Decides how that is watched: one connection, one request after another, so it is known to within one
request.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from pathlib import Path

from tests.load.closed_loop import Connection, request_bytes

WITHIN_S = 30.0
#: Between two looks: the one who looks must not take the cores from those whom it waits for.
_PAUSE_S = 0.002


class Watch:
    """One connection to one endpoint. Use as a context manager."""

    def __init__(
        self, port: int, trust: Path, endpoint: str, key: str, path: str = "v2/models/m/infer", pin: str = ""
    ) -> None:
        """``pin``: the one deployment that is asked, whatever the traffic; by GET, as for a model's
        metadata."""
        self._where = ("127.0.0.1", port, ssl.create_default_context(cafile=str(trust)), 10.0)
        url = f"https://127.0.0.1:{port}/endpoints/{endpoint}/{path}"
        headers = [f"Authorization: Bearer {key}", *([f"azureml-model-deployment: {pin}"] if pin else [])]
        self._request = request_bytes(url, headers, None if pin else b"{}")
        self._connection: Connection | None = None

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()

    def served_by(self) -> str:
        """The deployment that answers; empty for an error of ours."""
        if self._connection is None:
            self._connection = Connection(*self._where)
        answer = self._connection.exchange(self._request)
        if answer.close:
            self._connection.close()
            self._connection = None
        return answer.deployment if answer.status == 200 else ""

    def until(self, deployment: str, within_s: float = WITHIN_S) -> None:
        """Raises TimeoutError."""
        deadline = time.monotonic() + within_s
        while self.served_by() != deployment:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{deployment} did not answer within {within_s:g} s")
            time.sleep(_PAUSE_S)

    def change(self, make: Callable[[], object], deployment: str) -> float:
        """Milliseconds from before ``make`` until ``deployment`` answers."""
        began = time.perf_counter()
        make()
        self.until(deployment)
        return (time.perf_counter() - began) * 1000
