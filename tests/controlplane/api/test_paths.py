"""Words of the protocol are equal without case; names are left alone."""

from __future__ import annotations

import pytest

from amphitrite.controlplane.api.http.arm_paths import canonical

P = "Microsoft.MachineLearningServices"


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        (
            f"/SUBSCRIPTIONS/Models/resourcegroups/TOKEN/Providers/{P.upper()}/Workspaces/Data/onlineendpoints/Jobs",
            f"/subscriptions/Models/resourceGroups/TOKEN/providers/{P}/workspaces/Data/onlineEndpoints/Jobs",
        ),
        (
            f"/subscriptions/s/providers/{P.lower()}/locations/L/mfeoperationsstatus/ID",
            f"/subscriptions/s/providers/{P}/locations/L/mfeOperationsStatus/ID",
        ),
        ("/Storage/Models/Data", "/Storage/Models/Data"),
        ("/subscriptions", "/subscriptions"),
        ("/subscriptions/s/providers", "/subscriptions/s/providers"),
        ("/", "/"),
        ("", ""),
    ],
)
def test_canonical(path: str, wanted: str) -> None:
    assert canonical(path) == wanted
    assert canonical(wanted) == wanted
