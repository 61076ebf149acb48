"""What a step is, and what every step may use.

Decides how steps are found, run and told of. Must not know what a step does. This package runs in
an environment of Azure's SDK, where nothing of this project is installed: it imports the standard
library, the SDK and what that brings.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

import requests
from azure.ai.ml import MLClient
from azure.core.credentials import AccessToken
from azure.identity import DefaultAzureCredential

DEADLINE_S = 120.0

#: Module -> its steps in order.
_STEPS: dict[str, list[Callable[[Here], object]]] = {}
_NEWEST: set[Callable[[Here], object]] = set()


def step(function: Callable[[Here], object]) -> Callable[[Here], object]:
    """Marks a step. Steps of one module run in order, one after the other; a step that raises has
    failed."""
    _STEPS.setdefault(function.__module__, []).append(function)
    return function


def newest_step(function: Callable[[Here], object]) -> Callable[[Here], object]:
    """Marks a step of the newest release alone: it takes long, and asks the same of a server with
    any release."""
    _NEWEST.add(function)
    return step(function)


class Token:
    """A credential that somebody wrote: one token for everything."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *scopes: str, **more: object) -> AccessToken:
        return AccessToken(self._token, int(time.time()) + 3600)


class Here:
    """One run.

    ``release``: of the SDK; ``newest``: whether it is the newest of ours. ``tag``: what names of
    this run contain, for several share a workspace. ``files``: models and other files of this run
    alone; ``shared``: of all runs. ``adds``: directory in ``files`` -> the number that its model
    adds. ``python``: an interpreter with tritonclient. ``clusters``: a client of a server that has
    clusters.
    """

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.release: str = arguments["release"]
        self.newest: bool = arguments["newest"]
        self.tag = self.release.replace(".", "")
        self.files, self.shared = Path(arguments["files"]), Path(arguments["shared"])
        self.adds: dict[str, float] = arguments["adds"]
        self.python: str = arguments["python"]
        self.clusters = self._elsewhere(arguments["clusters"])
        #: ``invoke`` of the SDK keeps its headers in a global: one at a time.
        self.invoking = threading.Lock()

    @cached_property
    def client(self) -> MLClient:
        return self.new_client()

    def new_client(self, credential: Any = None, **more: Any) -> MLClient:
        """As every notebook makes it."""
        return MLClient(
            credential or DefaultAzureCredential(),
            os.environ["ML_SUBSCRIPTION"],
            os.environ["ML_RESOURCE_GROUP"],
            os.environ["ML_WORKSPACE"],
            **more,
        )

    def _elsewhere(self, server: dict[str, str]) -> MLClient:
        """A client of another server than that of this process, whose address the SDK reads at
        once."""
        before = os.environ["AZUREML_DEV_URL_MFE"]
        os.environ["AZUREML_DEV_URL_MFE"] = server["url"]
        try:
            return self.new_client(Token(server["token"]))
        finally:
            os.environ["AZUREML_DEV_URL_MFE"] = before

    @cached_property
    def workspace(self) -> str:
        """Its ARM id."""
        groups = f"/subscriptions/{os.environ['ML_SUBSCRIPTION']}/resourceGroups/{os.environ['ML_RESOURCE_GROUP']}"
        return f"{groups}/providers/Microsoft.MachineLearningServices/workspaces/{os.environ['ML_WORKSPACE']}"

    def rest(self, path: str, method: str = "GET", body: Any = None) -> Any:
        """What the server says on the wire of ``path`` in the workspace; requests.HTTPError for a
        refusal."""
        token = DefaultAzureCredential().get_token("https://management.azure.com/.default").token
        answer = requests.request(
            method,
            f"{os.environ['AZUREML_DEV_URL_MFE']}{self.workspace}/{path}",
            params={"api-version": "2023-08-01-preview"},
            json=body,
            headers={"Authorization": f"Bearer {token}"},
            timeout=30,
        )
        answer.raise_for_status()
        return answer.json() if answer.content else None

    @contextlib.contextmanager
    def alone(self, name: str) -> Iterator[None]:
        """One run at a time."""
        with (self.shared / f"{name}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def wait_until(condition: Callable[[], Any], what: str) -> Any:
    """The first truthy answer, asked every 50 ms."""
    pause, end = threading.Event(), time.monotonic() + DEADLINE_S
    while True:
        if answer := condition():
            return answer
        assert time.monotonic() < end, f"after {DEADLINE_S:.0f} s still not: {what}"
        pause.wait(0.05)


@contextlib.contextmanager
def refused(*words: str) -> Iterator[None]:
    """What is inside must raise one of Azure's errors that says all of ``words``."""
    from azure.ai.ml.exceptions import MlException
    from azure.core.exceptions import AzureError

    try:
        yield
    except (AzureError, MlException) as error:
        missing = [word for word in words if word not in str(error)]
        assert not missing, f"{type(error).__name__} does not say {missing}: {error}"
    else:
        raise AssertionError(f"was not refused: {words}")


def run(here: Here, modules: Sequence[str], output: TextIO, lock: threading.Lock) -> None:
    """The steps of these modules, each told in one line of JSON: step, ok, detail, s."""
    for function in [function for module in modules for function in _STEPS[f"{__package__}.{module}"]]:
        if function in _NEWEST and not here.newest:
            continue
        started, detail = time.monotonic(), ""
        try:
            function(here)
        except BaseException as error:
            detail = _told(error)
        told = {"step": function.__name__, "ok": not detail, "detail": detail, "s": time.monotonic() - started}
        with lock:
            output.write(json.dumps(told) + "\n")
            output.flush()


def _told(error: BaseException) -> str:
    """The traceback, and for an assertion the variables of the step, without which it says
    nothing."""
    text = "".join(traceback.format_exception(error))
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if frame.f_globals["__name__"] != __name__]
    if not isinstance(error, AssertionError) or not frames:
        return text
    values = {name: getattr(value, "__dict__", value) for name, value in frames[0].f_locals.items() if name != "here"}
    return text + "".join(f"{name} = {value!r}\n" for name, value in values.items())
