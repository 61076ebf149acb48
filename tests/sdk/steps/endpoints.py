"""Endpoints before anything serves: create, find, list, change, keys, delete."""

from __future__ import annotations

from typing import Any

from azure.ai.ml.entities import ManagedOnlineEndpoint
from azure.core.exceptions import ResourceNotFoundError

from .step import Here, refused, step, wait_until


def name(here: Here) -> str:
    return f"ep-{here.tag}"


def create(here: Here, endpoint: str, **more: Any) -> ManagedOnlineEndpoint:
    wanted = ManagedOnlineEndpoint(name=endpoint, auth_mode=more.pop("auth_mode", "key"), **more)
    return here.client.online_endpoints.begin_create_or_update(wanted).result()


def get(here: Here) -> ManagedOnlineEndpoint:
    return here.client.online_endpoints.get(name(here))


def put(here: Here, endpoint: ManagedOnlineEndpoint) -> ManagedOnlineEndpoint:
    return here.client.online_endpoints.begin_create_or_update(endpoint).result()


def exists(here: Here, endpoint: str) -> bool:
    try:
        here.client.online_endpoints.get(endpoint)
    except ResourceNotFoundError:
        return False
    return True


@step
def endpoint_create(here: Here) -> None:
    made = create(here, name(here), description="cats", tags={"t": "1"}, properties={"k": "v"})
    assert (made.name, made.auth_mode, made.description, made.tags) == (name(here), "key", "cats", {"t": "1"})
    assert (made.provisioning_state, made.traffic, made.mirror_traffic) == ("Succeeded", {}, {})
    assert made.id == f"{here.workspace}/onlineEndpoints/{name(here)}"
    assert made.identity.type == "system_assigned"


@step
def endpoint_get(here: Here) -> None:
    found = get(here)
    assert (found.name, found.kind, found.location) == (name(here), "Managed", "local")
    assert found.properties["k"] == "v"


@step
def h01_the_state_reads_succeeded(here: Here) -> None:
    """1.35.2 prints the name of an enumeration in its dict; the attribute is the plain word with
    every release."""
    assert get(here).provisioning_state == "Succeeded"
    assert get(here)._to_dict()["provisioning_state"].split(".")[-1].capitalize() == "Succeeded"
    assert here.rest(f"onlineEndpoints/{name(here)}")["properties"]["provisioningState"] == "Succeeded"


@step
def endpoint_list(here: Here) -> None:
    found = {endpoint.name: endpoint for endpoint in here.client.online_endpoints.list()}[name(here)]
    assert (found.provisioning_state, found.scoring_uri) == ("Succeeded", get(here).scoring_uri)


@step
def endpoint_update_tags(here: Here) -> None:
    before = get(here)
    before.tags["t"], before.tags["more"] = "2", "yes"
    assert put(here, before).tags == {"t": "2", "more": "yes"}
    after = get(here)
    assert (after.tags, after.description, after.scoring_uri) == (before.tags, "cats", before.scoring_uri)


@step
def h03_dates_that_the_sdk_adds_do_not_become_properties(here: Here) -> None:
    found = get(here)
    ours = {"AzureAsyncOperationUri", "azureml.onlineendpointid", "k"}
    assert {"createdBy", "createdAt", "lastModifiedAt", *ours} == set(found.properties)
    put(here, found)
    assert set(here.rest(f"onlineEndpoints/{name(here)}")["properties"]["properties"]) == ours


@step
def h20_both_public_ways_to_read_a_scoring_uri(here: Here) -> None:
    """``${scoring_uri%/*}`` strips one segment, ``scoring_uri[8:]`` the scheme."""
    uri = get(here).scoring_uri
    assert uri.startswith("https://")
    assert uri.rpartition("/")[0].endswith(f"/endpoints/{name(here)}")
    assert get(here).openapi_uri.endswith(f"/endpoints/{name(here)}/swagger.json")


@step
def endpoint_get_keys(here: Here) -> None:
    keys = here.client.online_endpoints.get_keys(name(here))
    assert len({keys.primary_key, keys.secondary_key, ""}) == 3


@step
def h10_a_regenerated_key_is_a_new_one(here: Here) -> None:
    """The SDK sends the current key along."""
    operations = here.client.online_endpoints
    first = operations.get_keys(name(here))
    operations.begin_regenerate_keys(name(here), key_type="primary").result()
    second = operations.get_keys(name(here))
    assert (second.primary_key != first.primary_key, second.secondary_key) == (True, first.secondary_key)
    operations.begin_regenerate_keys(name(here), key_type="secondary").result()
    third = operations.get_keys(name(here))
    assert (third.primary_key, third.secondary_key != second.secondary_key) == (second.primary_key, True)


@step
def endpoint_that_is_not_there(here: Here) -> None:
    for verb in (here.client.online_endpoints.get, here.client.online_endpoints.get_keys):
        with refused("ResourceNotFound", "nothing-there"):
            verb("nothing-there")


@step
def endpoint_begin_several_at_once(here: Here) -> None:
    names = [f"many-{number}-{here.tag}" for number in range(3)]
    begin = here.client.online_endpoints.begin_create_or_update
    pollers = [begin(ManagedOnlineEndpoint(name=each, auth_mode="key")) for each in names]
    assert [poller.result().provisioning_state for poller in pollers] == ["Succeeded"] * 3
    deletions = [here.client.online_endpoints.begin_delete(each) for each in names]
    assert [deletion.result() for deletion in deletions] == [None] * 3
    assert [exists(here, each) for each in names] == [False] * 3


@step
def endpoint_without_waiting(here: Here) -> None:
    """What ``--no-wait`` is: nobody asks for the result."""
    brief = f"brief-{here.tag}"
    here.client.online_endpoints.begin_create_or_update(ManagedOnlineEndpoint(name=brief, auth_mode="key"))
    wait_until(lambda: here.client.online_endpoints.get(brief).provisioning_state == "Succeeded", "created")
    here.client.online_endpoints.begin_delete(brief)
    wait_until(lambda: not exists(here, brief), "deleted")


@step
def h16_deleting_what_is_not_there_succeeds(here: Here) -> None:
    assert here.client.online_endpoints.begin_delete("nothing-there").result() is None


@step
def h21_names_are_checked(here: Here) -> None:
    for bad in ("ab", "a" * 33, "1cats", "cats_"):
        with refused("name"):
            create(here, bad)


@step
def endpoint_refusals(here: Here) -> None:
    for message, more in (
        ("public_network_access", {"public_network_access": "disabled"}),
        ("no deployment", {"traffic": {"purple": 100}}),
    ):
        with refused(message):
            create(here, f"refused-{here.tag}", **more)
    assert not exists(here, f"refused-{here.tag}")
