"""The client and the network: what is repeated, what is not, what is shown, what becomes of an
operation."""

from __future__ import annotations

import os
import re
from pathlib import Path

import httpx
import pytest

from amphitrite.cli.session.rest_client import Client, path_and_query
from amphitrite.cli.terminal.options import Scope
from amphitrite.schemas.errors import Error

from ...tiny_onnx import tiny
from ..conftest import Stage

REFUSED = httpx.ConnectError("connection refused")
SCOPE = Scope("local", "local", "local")


def answering(response: httpx.Response) -> Client:
    http = httpx.Client(transport=httpx.MockTransport(lambda request: response), base_url="https://here:1")
    return Client(http, SCOPE)


def test_a_read_is_repeated_when_the_connection_is_lost(stage: Stage) -> None:
    stage.machine.faults = [REFUSED, httpx.ReadError("reset")]
    assert stage.run("online-endpoint", "list") == (0, "[]\n", "")
    assert len(stage.machine.requests) == 3


def test_a_write_is_not_repeated(stage: Stage) -> None:
    stage.machine.faults = [REFUSED]
    code, out, err = stage.run("online-endpoint", "create", "-n", "ep1")
    assert (code, out) == (3, "")
    assert (
        err == "error: no control plane at https://127.0.0.1:8443 [ServerUnreachable]\nhint: run `ml server start -d`\n"
    )
    assert [line for line in stage.machine.requests if line.startswith("PUT")] == stage.machine.requests


def test_who_does_not_answer_in_time_is_not_asked_again(stage: Stage) -> None:
    stage.machine.faults = [httpx.ReadTimeout("timed out")]
    code, _, err = stage.run("online-endpoint", "list")
    assert (code, len(stage.machine.requests)) == (3, 1)
    assert err == "error: the control plane at https://127.0.0.1:8443 did not answer in time [ServerUnreachable]\n"


def test_an_operation_outlives_a_control_plane_that_is_away_for_a_moment(stage: Stage) -> None:
    def away(request: httpx.Request) -> None:
        if "mfeOperationsStatus" in request.url.path and not stage.machine.faults and len(asked) < 4:
            asked.append(request)
            raise REFUSED

    asked: list[httpx.Request] = []
    stage.client.event_hooks = {"request": [away]}
    assert stage.run("online-endpoint", "create", "-n", "ep1", "-o", "none")[0] == 0
    assert len(asked) == 4


def test_a_model_that_cannot_be_loaded_fails_the_command_with_the_reason(stage: Stage) -> None:
    (stage.directory / "repository/model_1/1").mkdir(parents=True)
    (stage.directory / "repository/model_1/1/model.onnx").write_bytes(tiny("broken"))
    text = "name: blue\nendpoint_name: ep1\nmodel: azureml:m:1\ninstance_type: Standard_DS3_v2\n"
    (stage.directory / "blue.yml").write_text(text)
    stage.run("model", "create", "-n", "m", "-p", "repository", "-t", "triton_model")
    stage.run("online-endpoint", "create", "-n", "ep1")
    digest = stage.machine.services.models.reference("m", "1")["digest"]
    stage.machine.runtime.broken[digest] = "failed to load model_1: not an ONNX file"
    code, out, err = stage.run("online-deployment", "create", "-f", "blue.yml")
    assert (code, out) == (1, "")
    assert err.startswith("error: ") and "not an ONNX file" in err


def test_an_answer_that_is_not_ours_is_told_as_it_is() -> None:
    with pytest.raises(Error) as caught:
        answering(httpx.Response(502, text="<html>bad\ngateway</html>")).get("/subscriptions/x")
    assert caught.value.message.startswith("HTTP 502 from https://here:1/subscriptions/x")
    assert caught.value.message.endswith("<html>bad gateway</html>")


def test_a_refused_token_says_which_one_is_sent() -> None:
    body = {"error": {"code": "AuthenticationFailed", "message": "no token"}}
    with pytest.raises(Error) as caught:
        answering(httpx.Response(401, json=body)).get("/subscriptions/x")
    assert (caught.value.code, caught.value.hint) == ("AuthenticationFailed", "set ML_TOKEN to a valid token")


def test_addresses_in_answers_are_asked_where_the_control_plane_was_reached() -> None:
    assert path_and_query("https://inside:8443/subscriptions/s?api-version=1&$skip=100") == (
        "/subscriptions/s?api-version=1&$skip=100"
    )


def test_lists_of_many_pages(stage: Stage) -> None:
    for number in range(101):
        document = {"name": f"ep-{number:03}", "auth_mode": "key"}
        stage.machine.services.store.put_endpoint(document, if_match=None, if_none_match=True, now=1.0)
    code, out, _ = stage.run("online-endpoint", "list", "--query", "length(@)")
    assert (code, out) == (0, "101\n")


def test_debug_shows_everything_but_secrets(stage: Stage) -> None:
    stage.run("online-endpoint", "create", "-n", "ep1")
    secrets = [secret.reveal() for secret in stage.machine.services.store.get_keys("ep1")]
    secrets.append(stage.machine.services.credentials.token.reveal())
    code, _, err = stage.run("online-endpoint", "get-credentials", "-n", "ep1", "--debug", "-o", "none")
    assert code == 0
    assert re.search(r"/listKeys\S+ -> 200 in ", err) and '"primaryKey": "***"' in err and "authorization: ***" in err
    assert not [secret for secret in secrets if secret in err]


def test_verbose_is_a_line_for_each_request(stage: Stage) -> None:
    _, _, err = stage.run("--verbose", "online-endpoint", "list")
    assert re.fullmatch(r"GET https://127.0.0.1:8443/\S+/onlineEndpoints\?\S+ -> 200 in \d+ ms\n", err)


def test_a_traceback_only_under_debug(stage: Stage) -> None:
    assert "Traceback" not in stage.run("online-endpoint", "show", "-n", "nope")[2]
    assert "Traceback" in stage.run("online-endpoint", "show", "-n", "nope", "--debug")[2]


def test_process_substitution_is_a_file(stage: Stage, tmp_path: Path) -> None:
    stage.run("online-endpoint", "create", "-n", "ep1")
    reader, writer = os.pipe()
    os.write(writer, b'{"inputs": []}')
    os.close(writer)
    code, out, _ = stage.run("online-endpoint", "invoke", "-n", "ep1", "-r", f"/dev/fd/{reader}", "-o", "tsv")
    os.close(reader)
    assert (code, out) == (0, '{"deployment":null,"got":{"inputs":[]}}\n')


def test_a_change_is_made_on_top_of_another_one_made_meanwhile(stage: Stage) -> None:
    stage.run("online-endpoint", "create", "-n", "ep1")
    meanwhile = [{"name": "ep1", "auth_mode": "key", "description": "meanwhile"}]

    def interfere(request: httpx.Request) -> None:
        if request.method == "PUT" and meanwhile:
            store = stage.machine.services.store
            store.put_endpoint(meanwhile.pop(), if_match=None, if_none_match=False, now=1.0)

    stage.client.event_hooks = {"request": [interfere]}
    query = ("--query", "[description, tags]", "-o", "tsv")
    assert stage.run("online-endpoint", "update", "-n", "ep1", "--set", "tags.a=b", *query)[0] == 0
    shown = stage.machine.services.store.get_endpoint("ep1").document
    assert (shown["description"], shown["tags"]) == ("meanwhile", {"a": "b"})
