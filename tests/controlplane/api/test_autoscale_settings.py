"""Azure Monitor's autoscale settings over HTTP: written, read, refused, and what they come to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from amphitrite.controlplane.core.observed.status import Ref
from amphitrite.controlplane.reconciliation.autoscaler import Autoscaler
from amphitrite.controlplane.reconciliation.setting_scaler import SettingScaler
from amphitrite.controlplane.services import autoscale_changes
from amphitrite.dataplane.metrics.counters import Totals

from .conftest import WS

GROUP = "/subscriptions/local/resourcegroups/local/providers/microsoft.insights/autoscalesettings"
ENDPOINT = f"{WS}/onlineEndpoints/ep1"
BLUE = f"{ENDPOINT}/deployments/blue"
CPU = "CpuUtilizationPercentage"


def rule(threshold: float, direction: str, operator: str = "GreaterThan", metric: str = CPU) -> dict[str, Any]:
    return {
        "metricTrigger": {
            "metricName": metric,
            "metricResourceUri": BLUE if metric == CPU else ENDPOINT,
            "timeGrain": "PT1M",
            "statistic": "Average",
            "timeWindow": "PT5M",
            "timeAggregation": "Average",
            "operator": operator,
            "threshold": threshold,
        },
        "scaleAction": {"direction": direction, "type": "ChangeCount", "value": "1", "cooldown": "PT5M"},
    }


def body(*rules: dict[str, Any], low: int = 2, most: int = 5, **more: Any) -> dict[str, Any]:
    capacity = {"minimum": str(low), "maximum": str(most), "default": str(low)}
    profile = {"name": "default", "capacity": capacity, "rules": list(rules)}
    return {"location": "local", "properties": {"targetResourceUri": BLUE, "profiles": [profile], **more}}


OUT, IN = rule(70, "Increase"), rule(25, "Decrease", "LessThan")


@pytest.fixture
def served(ready: Any) -> Any:
    return ready


def put(world: Any, content: dict[str, Any], name: str = "as", **headers: str) -> Any:
    return world.client.put(
        f"{GROUP}/{name}", json=content, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )


def scale(world: Any) -> int:
    """One pass of the leader; the number of instances after it."""
    world.store.begin_term()
    scaler = SettingScaler(
        world.store, world.services.metrics, lambda now: bool(world.services.agents.live(now)), world.services.workspace
    )
    Autoscaler(world.store, [scaler], lambda: None).make_pass(world.now[0])
    (found,) = world.store.load_world().deployments
    return int(found.instance_count)


def test_a_setting_is_created_read_changed_and_deleted(served: Any) -> None:
    made = put(served, {**body(OUT, IN), "tags": {"team": "a"}})
    assert made.status_code == 201, made.text
    got = served.client.get(f"{GROUP.replace('microsoft', 'Microsoft')}/AS", params={"api-version": "2022-10-01"})
    assert got.json() == made.json() and got.headers["etag"] == made.headers["etag"]
    shown = got.json()
    assert shown["id"].endswith("resourceGroups/local/providers/microsoft.insights/autoscalesettings/as")
    assert (shown["name"], shown["type"]) == ("as", "Microsoft.Insights/autoscaleSettings")
    assert shown["tags"] == {"team": "a"} and "warnings" not in shown
    assert shown["properties"]["profiles"] == body(OUT, IN)["properties"]["profiles"]
    assert shown["properties"]["enabled"] is True and shown["properties"]["name"] == "as"
    assert put(served, shown).status_code == 200  # What was read can be sent back.
    patched = served.client.patch(f"{GROUP}/as", json={"tags": {}, "properties": {"enabled": False}}).json()
    assert (patched["tags"], patched["properties"]["enabled"]) == ({}, False)
    assert patched["properties"]["profiles"] == shown["properties"]["profiles"]
    for path in (GROUP, "/subscriptions/local/providers/Microsoft.Insights/autoscaleSettings"):
        assert [one["name"] for one in served.client.get(path).json()["value"]] == ["as"]
    assert served.client.delete(f"{GROUP}/as").status_code == 200
    assert served.client.delete(f"{GROUP}/as").status_code == 204
    assert served.client.get(f"{GROUP}/as").status_code == 404


def leaves(value: Any, path: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], Any]:
    """Each single value with its path."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return {at: one for name, inner in items for at, one in leaves(inner, (*path, name)).items()}
    return {path: value}


def test_every_field_that_azures_client_sends_is_read_back(served: Any) -> None:
    """``data/autoscale_setting.json`` is what azure-mgmt-monitor 7.0.0 makes of a resource with all
    its fields."""
    sent = json.loads((Path(__file__).parent / "data" / "autoscale_setting.json").read_text())
    assert put(served, sent, name="full").status_code == 201
    got = leaves(served.client.get(f"{GROUP}/full").json())
    assert len(leaves(sent)) > 50
    assert {path: got.get(path) for path in leaves(sent)} == leaves(sent)


def test_the_metrics_of_a_deployment_include_its_instances(served: Any) -> None:
    now = served.now[0] = served.now[0] // 60 * 60
    fields = {f"usage/blue-0/{name}": n for name, n in (("cpu", 300.0), ("memory", 60.0), ("samples", 6.0))}
    served.services.metrics.put("usage-1", Totals(now, {("ep1", "blue"): fields}), now)
    served.now[0] += 30
    names = "CpuUtilizationPercentage,CpuMemoryUtilizationPercentage,RequestsPerMinute"
    query = {"metricnames": names, "timespan": "PT1M", "interval": "FULL"}
    answer = served.client.get(f"{BLUE}/providers/Microsoft.Insights/metrics", params=query).json()
    assert answer["namespace"] == "Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments"
    assert [one["timeseries"][0]["data"][0]["average"] for one in answer["value"]] == [50.0, 10.0, 0.0]


def refused(answer: Any, code: str, message: str) -> None:
    error = answer.json()["error"]
    assert error["code"] == code, answer.text
    assert message in error["message"] or any(message in one["message"] for one in error.get("details", ())), error


def test_refuses_and_stores_nothing(served: Any) -> None:
    for content, code, message in (
        ({"properties": {}}, "InvalidDocument", "required"),
        ({**body(OUT), "sku": {}}, "InvalidDocument", "there is no such field"),
        (body(OUT, targetResourceUri=f"{ENDPOINT}/deployments/gone"), "ResourceNotFound", "gone"),
        (body(rule(1, "Increase", metric="GpuUtilizationPercentage")), "InvalidDocument", "does not measure GPUs"),
        (body(OUT, predictiveAutoscalePolicy={"scaleMode": "Enabled"}), "InvalidDocument", "forecasts nothing"),
        ({**body(OUT), "tags": {"a": 1}}, "InvalidDocument", "texts"),
    ):
        refused(put(served, content), code, message)
    bad = rule(1, "Increase", metric="RequestLatency")
    bad["metricTrigger"]["metricResourceUri"] = f"{WS}/onlineEndpoints/none"
    refused(put(served, body(bad)), "InvalidDocument", "none does not exist")
    assert put(served, body(OUT), name="n" * 256).status_code == 400
    assert served.client.get(GROUP).json()["value"] == []
    assert served.client.get(GROUP.replace("local", "other")).status_code == 404
    assert served.client.get("/subscriptions/x/providers/microsoft.insights/autoscalesettings").status_code == 404


def test_a_deployment_has_at_most_one_setting(served: Any) -> None:
    assert put(served, body(OUT)).status_code == 201
    refused(put(served, body(OUT), name="two"), "Conflict", "the autoscale setting as scales ep1/blue already")
    assert served.client.delete(f"{GROUP}/as").status_code == 200
    assert put(served, body(OUT), name="two").status_code == 201


def test_a_write_may_have_conditions(served: Any) -> None:
    etag = put(served, body(OUT), If_None_Match="*").headers["etag"]
    refused(put(served, body(OUT), If_None_Match="*"), "PreconditionFailed", "exists")
    newer = put(served, body(OUT), If_Match=etag)
    assert newer.status_code == 200
    refused(put(served, body(OUT), If_Match=etag), "PreconditionFailed", "changed")


def test_scale_settings_and_a_setting_refuse_each_other(served: Any) -> None:
    document = {
        "name": "blue",
        "instance_type": "Standard_NC6s_v3",
        "scale_settings": {"type": "target_utilization", "max_instances": 3},
    }
    assert put(served, body(OUT)).status_code == 201
    (violation,) = autoscale_changes.check_scale_settings(served.services, "EP1", document)
    assert str(violation) == "scale_settings: the autoscale setting as scales this deployment already"
    assert served.client.delete(f"{GROUP}/as").status_code == 200
    assert autoscale_changes.check_scale_settings(served.services, "EP1", document) == []
    model = served.services.models.reference("m", "1")
    served.store.put_deployment("ep1", document, model, if_match=None, if_none_match=False, now=2.0)
    refused(put(served, body(OUT)), "Conflict", "the scale_settings of ep1/blue scale it already")


def test_warns_of_a_rule_in_the_wrong_direction(served: Any) -> None:
    (warning,) = [w for w in put(served, body(OUT, rule(25, "Increase", "LessThan"))).json()["warnings"] if "Less" in w]
    assert "a rule to scale in has Decrease" in warning


def test_the_limits_hold_and_the_users_number_counts_within_them(served: Any) -> None:
    assert scale(served) == 1
    put(served, body())
    assert scale(served) == 2
    (event,) = served.store.scale_events(Ref("ep1", "blue"))
    assert (event.before, event.after, event.by) == (1, 2, "as")
    assert event.reason == "profile default: the minimum is 2"
    served.deployment(count=4)
    assert scale(served) == 4
    served.deployment(count=9)
    assert scale(served) == 5
    served.deployment(count=5, description="said")
    assert scale(served) == 5
    reasons = [one.reason for one in served.store.scale_events(Ref("ep1", "blue"))]
    assert reasons[1:] == [
        "instance_count was set to 4",
        "instance_count was set to 9",
        "profile default: the maximum is 5",
    ]


def test_disabled_or_deleted_it_leaves_the_number(served: Any) -> None:
    put(served, body(low=3))
    assert scale(served) == 3
    put(served, body(low=4, enabled=False))
    assert scale(served) == 3
    assert served.client.get(f"{GROUP}/as").json()["status"]["reason"] == "the setting is not enabled"
    served.client.delete(f"{GROUP}/as")
    assert scale(served) == 3
    served.deployment(count=1)
    assert scale(served) == 1


def test_a_paused_deployment_stays_paused(served: Any) -> None:
    put(served, body())
    assert served.client.post(f"{BLUE}/pause", json={}).status_code < 300
    assert scale(served) == 0
    assert served.store.scale_events(Ref("ep1", "blue")) == []
    assert served.client.get(f"{GROUP}/as").json()["status"] == {"instances": 0, "reason": "ep1/blue is paused"}
    assert served.client.post(f"{BLUE}/resume", json={}).status_code < 300
    assert scale(served) == 2


def test_a_rollback_leaves_the_number(served: Any) -> None:
    put(served, body(low=3))
    assert scale(served) == 3
    served.deployment(count=3, description="said")
    served.settle()
    assert served.client.post(f"{BLUE}/rollback", json={}).status_code == 200
    assert scale(served) == 3
    assert len(served.store.scale_events(Ref("ep1", "blue"))) == 1


def report(world: Any, **fields: float) -> None:
    """Half a minute before now."""
    agent = world.client.put("/dataplane/v1/agents/one", json={})
    assert agent.status_code == 204
    counters = {"ep1": {"blue": fields}}
    answer = world.client.put(
        "/dataplane/v1/agents/one/metrics",
        json={"began": 0, "counters": counters, "in_flight": {}, "used": {}},
    )
    assert answer.status_code == 204, answer.text


def test_rules_on_requests_scale_out_and_in_after_the_cooldown(served: Any) -> None:
    busy = rule(60, "Increase", metric="RequestsPerMinute")
    idle = rule(10, "Decrease", "LessThan", metric="RequestsPerMinute")
    put(served, body(busy, idle, low=1))
    assert scale(served) == 1
    assert served.client.get(f"{GROUP}/as").json()["status"] == {
        "instances": 1,
        "profile": "default",
        "reason": "profile default: RequestsPerMinute: no data, so nothing is taken away",
    }
    report(served, **{"requests/200/": 0})
    served.now[0] = served.now[0] // 60 * 60 + 60
    report(served, **{"requests/200/": 400})
    served.now[0] += 60
    report(served, **{"requests/200/": 400})
    assert scale(served) == 2
    assert served.store.scale_events(Ref("ep1", "blue"))[-1].reason == (
        "profile default: RequestsPerMinute of endpoint ep1 is 80 (> 60)"
    )
    assert scale(served) == 2
    assert "cooling down for 300 s" in served.client.get(f"{GROUP}/as").json()["status"]["reason"]
    served.now[0] += 299
    report(served, **{"requests/200/": 400})
    assert scale(served) == 2
    served.now[0] += 61
    report(served, **{"requests/200/": 400})
    assert scale(served) == 1


def test_a_setting_waits_for_its_deployment(served: Any) -> None:
    put(served, body())
    served.store.delete(Ref("ep1", "blue"), if_match=None, now=1.0)
    served.settle()
    status = served.client.get(f"{GROUP}/as").json()["status"]
    assert status == {"reason": "ep1/blue does not exist; the setting waits for it"}
    served.store.begin_term()
    served.deployment()
    served.settle()
    assert scale(served) == 2
