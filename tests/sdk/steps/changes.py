"""Changes of the deployments that serve, what is refused, and their end."""

from __future__ import annotations

from typing import Any

from azure.ai.ml.entities import CodeConfiguration, Model, OnlineRequestSettings, ProbeSettings
from azure.core.exceptions import ResourceNotFoundError

from . import endpoints
from .deployments import answered, deploy, get, invoke, put, registered, sums
from .endpoints import name
from .step import Here, refused, step

#: A model that is well-formed and does not start.
STUBBORN = """
class TritonPythonModel:
    def initialize(self, args):
        raise RuntimeError("it would rather not")

    def execute(self, requests):
        return []
"""
STUBBORN_CONFIG = """
backend: "python"
input [{ name: "X" data_type: TYPE_FP32 dims: [1] }]
output [{ name: "Y" data_type: TYPE_FP32 dims: [1] }]
"""


@step
def deployment_update_in_place(here: Here) -> None:
    found = get(here)
    found.environment_variables = {"A": "c"}
    found.tags["more"] = "yes"
    assert put(here, found).environment_variables == {"A": "c"}
    assert get(here).tags == {"color": "blue", "more": "yes"}
    assert answered(invoke(here)) == sums(here, "one")


@step
def deployment_request_settings_and_probes(here: Here) -> None:
    found = get(here)
    found.request_settings = OnlineRequestSettings(request_timeout_ms=3000, max_concurrent_requests_per_instance=4)
    found.liveness_probe = ProbeSettings(initial_delay=5, period=7, timeout=3, failure_threshold=9, success_threshold=1)
    put(here, found)
    seen = get(here)
    settings, probe = seen.request_settings, seen.liveness_probe
    assert (settings.request_timeout_ms, settings.max_concurrent_requests_per_instance) == (3000, 4)
    assert (probe.initial_delay, probe.period, probe.timeout, probe.failure_threshold) == (5, 7, 3, 9)


@step
def h07_sub_second_durations_are_kept_as_sent(here: Here) -> None:
    """The SDK reads them in whole seconds; what is in force is what was asked for."""
    found = get(here)
    found.request_settings.request_timeout_ms = 2500
    put(here, found)
    wire = here.rest(f"onlineEndpoints/{name(here)}/deployments/blue")["properties"]["requestSettings"]
    assert wire["requestTimeout"] == "PT2.5S"
    assert get(here).request_settings.request_timeout_ms in (2000, 2500)


@step
def deployment_queue_wait_is_kept(here: Here) -> None:
    """Azure's own examples set it."""
    found = get(here)
    found.request_settings.max_queue_wait_ms = 3000
    put(here, found)
    assert get(here).request_settings.max_queue_wait_ms == 3000
    wire = here.rest(f"onlineEndpoints/{name(here)}/deployments/blue")["properties"]
    assert wire["requestSettings"]["maxQueueWait"] == "PT3S"
    assert "max_queue_wait_ms" not in str(wire["status"].get("notes"))
    found = get(here)
    found.request_settings.max_queue_wait_ms = 0
    put(here, found)
    wire = here.rest(f"onlineEndpoints/{name(here)}/deployments/blue")["properties"]
    assert wire["requestSettings"]["maxQueueWait"] == "PT0S"


@step
def deployment_scale(here: Here) -> None:
    found = get(here)
    found.instance_count = 2
    assert put(here, found).instance_count == 2
    assert get(here).provisioning_state == "Succeeded"
    found.instance_count = 1
    assert put(here, found).instance_count == 1


@step
def h02_replies_are_complete_for_the_next_update(here: Here) -> None:
    """A deployment that was read goes back as it is, although the SDK leaves out what it did not
    understand."""
    address = f"onlineEndpoints/{name(here)}/deployments/green"
    before = here.rest(address)
    put(here, get(here, "green"))
    after = here.rest(address)
    for found in (before, after):
        del found["properties"]["status"]  # How far the proxies are may be told in between.
    assert before["properties"] == after["properties"]
    assert before["sku"] == after["sku"]


@step
def deployment_refusals(here: Here) -> None:
    cases: list[tuple[str, Any, dict[str, Any]]] = [
        ("there is no model", f"azureml:serve-one-{here.tag}:77", {}),
        ("instance_type", registered(here), {"instance_type": "Standard_X"}),
        ("egress_public_network_access", registered(here), {"egress_public_network_access": "disabled"}),
        ("request_timeout_ms", registered(here), {"request_settings": OnlineRequestSettings(request_timeout_ms=10**6)}),
        ("custom_model", Model(path=str(here.files / "two"), type="custom_model"), {}),
    ]
    for message, model, more in cases:
        with refused(message):
            deploy(here, "refused", model, **more)
    assert "refused" not in {one.name for one in here.client.online_deployments.list(name(here))}


@step
def deployment_of_a_scoring_script_is_refused(here: Here) -> None:
    code = here.files / "code"
    code.mkdir()
    (code / "score.py").write_text("def init():\n    pass\n\n\ndef run(data):\n    return data\n")
    script = CodeConfiguration(code=str(code), scoring_script="score.py")
    with refused("code_configuration", "python backend"):
        deploy(here, "script", registered(here), code_configuration=script)


@step
def deployment_to_an_endpoint_that_is_not_there(here: Here) -> None:
    with refused("nothing-there"):
        deploy(here, "blue", registered(here), "nothing-there")


@step
def model_that_triton_would_not_load_is_refused(here: Here) -> None:
    file = here.files / "broken" / "tiny" / "1" / "model.onnx"
    file.parent.mkdir(parents=True)
    file.write_text(f"no model of {here.tag}")
    with refused("tiny/1/model.onnx"):
        deploy(here, "broken", Model(path=str(here.files / "broken"), type="triton_model"))
    assert "broken" not in {one.name for one in here.client.online_deployments.list(name(here))}


@step
def deployment_that_fails_says_why(here: Here) -> None:
    model = here.files / "failing" / "stubborn"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text(STUBBORN_CONFIG)
    (model / "1" / "model.py").write_text(f"# {here.tag}\n{STUBBORN}")
    with refused("ResourceNotReady", "it would rather not"):
        deploy(here, "broken", Model(path=str(model.parent), type="triton_model"))
    assert get(here, "broken").provisioning_state == "Failed"
    assert "it would rather not" in here.client.online_deployments.get_logs("broken", name(here), lines=2000)


@step
def h22_a_deployment_with_traffic_is_not_deleted(here: Here) -> None:
    with refused("traffic"):
        here.client.online_deployments.begin_delete("blue", name(here)).result()
    assert get(here).provisioning_state == "Succeeded"


@step
def deployment_delete(here: Here) -> None:
    deletions = [here.client.online_deployments.begin_delete(one, name(here)) for one in ("green", "broken")]
    for deletion in deletions:
        deletion.result()
    assert [one.name for one in here.client.online_deployments.list(name(here))] == ["blue"]


@step
def endpoint_delete_takes_its_deployments_along(here: Here) -> None:
    here.client.online_endpoints.begin_delete(name(here)).result()
    assert not endpoints.exists(here, name(here))
    try:
        get(here)
    except ResourceNotFoundError:
        return
    raise AssertionError("the deployment outlived its endpoint")
