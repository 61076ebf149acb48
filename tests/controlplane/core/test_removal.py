"""Deleting a deployment that has traffic: refused, or its share goes to the others."""

from __future__ import annotations

from typing import Any

import pytest

from amphitrite.controlplane.core.rules.traffic_removal import check_removal, traffic_without


@pytest.mark.parametrize(
    ("endpoint", "messages"),
    [
        ({}, []),
        ({"traffic": {"green": 100, "blue": 0}}, []),
        (
            {"traffic": {"BLUE": 100}, "mirror_traffic": {}},
            ["traffic.blue: deployment Blue receives 100 % of the traffic of endpoint ep"],
        ),
        (
            {"mirror_traffic": {"blue": 10}},
            ["mirror_traffic.blue: deployment Blue receives 10 % of the mirrored traffic of ep"],
        ),
    ],
)
def test_removals(endpoint: dict[str, Any], messages: list[str]) -> None:
    assert [str(found) for found in check_removal({"name": "ep", **endpoint}, "Blue")] == messages


@pytest.mark.parametrize(
    ("traffic", "left", "told"),
    [
        ({"blue": 100}, {}, '"blue=0"'),
        ({"blue": 90, "green": 10}, {"green": 100}, '"green=100"'),
        ({"blue": 40, "green": 40, "red": 20}, {"green": 67, "red": 33}, '"green=67 red=33"'),
        ({"blue": 4, "a1": 32, "b1": 32, "c1": 32}, {"a1": 34, "b1": 33, "c1": 33}, '"a1=34 b1=33 c1=33"'),
        ({"blue": 1, "green": 98, "red": 1}, {"green": 99, "red": 1}, '"green=99 red=1"'),
    ],
)
def test_its_share_goes_to_the_others_in_proportion(traffic: dict[str, int], left: dict[str, int], told: str) -> None:
    endpoint = {"name": "ep", "tags": {"a": "b"}, "traffic": traffic, "mirror_traffic": {"BLUE": 5, "grey": 7}}
    assert traffic_without(endpoint, "Blue") == {**endpoint, "traffic": left, "mirror_traffic": {"grey": 7}}
    hint = str(check_removal(endpoint, "Blue")[0].hint)
    assert hint.startswith(f"run `ml online-endpoint update -n ep --traffic {told}` first, or delete it with --force")
