"""What a new document would do to what is there."""

from __future__ import annotations

from typing import Any

import pytest

from amphitrite.controlplane.core.planning.preview import Preview, preview, replacing_fields

BLUE = {"name": "blue", "model": "m:1", "instance_type": "Standard_DS3_v2"}


@pytest.mark.parametrize(
    ("former", "document", "failed", "want"),
    [
        (None, BLUE, False, Preview("create")),
        (BLUE, BLUE, False, Preview("none")),
        (BLUE, BLUE, True, Preview("retry")),
        (BLUE, {**BLUE, "instance_type": "standard_ds3_V2"}, False, Preview("none")),
        (BLUE, {**BLUE, "tags": {}}, False, Preview("none")),
        (BLUE, {**BLUE, "tags": {"a": "b"}}, False, Preview("update")),
        ({**BLUE, "tags": {"a": "b"}}, BLUE, True, Preview("update")),
        ({**BLUE, "instance_count": 2}, BLUE, False, Preview("update")),
        (BLUE, {**BLUE, "model": "m:2", "tags": {"a": "b"}}, False, Preview("replace", ("model",))),
        (
            BLUE,
            {**BLUE, "model": "m:2", "environment_variables": {"A": "b"}},
            False,
            Preview("replace", ("environment_variables", "model")),
        ),
    ],
)
def test_changes(former: Any, document: Any, failed: bool, want: Preview) -> None:
    assert preview(former, document, failed=failed, replacing=replacing_fields(on_cluster=False)) == want


@pytest.mark.parametrize(("on_cluster", "want"), [(False, "update"), (True, "replace")])
def test_probes_are_part_of_a_pod(on_cluster: bool, want: str) -> None:
    probed = {**BLUE, "readiness_probe": {"period": 3}}
    told = preview(BLUE, probed, failed=False, replacing=replacing_fields(on_cluster=on_cluster))
    assert told.change == want
