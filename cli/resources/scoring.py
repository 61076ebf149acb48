"""``invoke``: one scoring request, as a client sends it.

Decides what is sent with the request, and how a response that is not a success becomes an Error.
Must not know options.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from amphitrite.cli.resources import lookups
from amphitrite.cli.session import near_names
from amphitrite.schemas.errors import CLIENT_CODES, CODES, Error

if TYPE_CHECKING:
    import httpx

    from amphitrite.cli.session.rest_client import Client

_HINTS = {
    401: "try again: the key may have been regenerated, or the token may have expired",
    503: "run `ml online-deployment get-logs` to see the reason",
}
#: The hint on a model's failure after a request without a body.
_EMPTY = "the request had no body: add --request-file with the JSON that the model takes"
#: The hint on Triton's answer to a body of another form, such as Azure's {"data": ...}.
_FORM = 'a model of Triton takes {"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]}'
#: In Triton's answers to such a body.
_NO_INPUTS = "Unable to parse 'inputs'"


def invoke(client: Client, name: str, request_file: str | None, deployment: str | None) -> str:
    """Send the JSON in ``request_file`` to the endpoint; return the body of the response.

    Raises Error LocalFileError (not JSON), ResourceNotFound (endpoint, deployment), the proxy's
    refusal, or ScoringFailed.
    """
    body = _read(request_file) if request_file is not None else b""
    with near_names.suggested(client, *lookups.endpoint_places(client, name)):
        endpoint = client.get(lookups.endpoint_path(client, name))
    uri = endpoint["properties"]["scoringUri"]
    headers = {"Content-Type": "application/json"}
    if deployment is not None:
        with near_names.suggested(client, *lookups.deployment_places(client, name, deployment)):
            client.get(lookups.deployment_path(client, name, deployment))
        headers["azureml-model-deployment"] = deployment.lower()
    headers["Authorization"] = f"Bearer {_credential(client, name, endpoint['properties']['authMode'])}"
    try:
        answer = client.exchange("POST", uri, content=body, headers=headers)
    except Error as error:
        raise Error("ScoringFailed", f"no answer from {uri}: {error.message}", target=uri) from error
    if not answer.is_success:
        raise _failure(name, uri, answer, is_empty=request_file is None)
    return answer.text


def _credential(client: Client, name: str, mode: str) -> str:
    """The key or token. ``ML_SCORING_TOKEN`` is sent only to endpoints of auth mode aad_token."""
    token = os.environ.get("ML_SCORING_TOKEN")
    if token and mode.lower() == "aadtoken":
        return token
    credentials = lookups.credentials(client, name)
    return str(credentials.get("primaryKey") or credentials["accessToken"])


def _read(file: str) -> bytes:
    """The content of a file or a pipe; ``-`` is standard input."""
    try:
        with open(0 if file == "-" else file, "rb", closefd=file != "-") as stream:
            data = stream.read()
        json.loads(data)
    except OSError as exc:
        raise Error("LocalFileError", f"cannot read {file}: {exc.strerror}", target=file) from exc
    except ValueError as exc:
        raise Error("LocalFileError", f"{file} is not JSON: {exc}", target=file) from exc
    return data


def _failure(endpoint: str, uri: str, answer: httpx.Response, *, is_empty: bool) -> Error:
    """``is_empty``: there was no request file. Some models of one's own containers need none."""
    code = "ScoringFailed"
    try:
        error = answer.json()["error"]
        if isinstance(error, str):  # Triton's own form
            message = error
        elif error["code"] in CODES.keys() - CLIENT_CODES:
            code, message = error["code"], error["message"]
        else:
            message = f"{error['code']}: {error['message']}"
    except (ValueError, KeyError, TypeError):
        message = answer.text.strip()[:2000] or "no body"
    hint = _HINTS.get(answer.status_code)
    if code == "NoTraffic":
        hint = f'run `ml online-endpoint update -n {endpoint} --traffic "DEPLOYMENT=100"`'
    if answer.status_code == 424:
        hint = _EMPTY if is_empty else _FORM if _NO_INPUTS in message else None
    return Error(code, f"{uri} answered {answer.status_code}: {message}", target=uri, hint=hint)
