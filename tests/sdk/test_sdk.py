"""Azure's own SDK, unmodified, against a real server over TLS: every step with every release.

A test here reads what became of one step; all steps of a release run in one process, for importing
the SDK takes seconds. What a step does is written in ``steps/``.
"""

from __future__ import annotations

import pytest

from . import environments, runs

pytestmark = [pytest.mark.serving, pytest.mark.sdk]


STEPS = [(release, name) for release in environments.RELEASES for name in runs.names(release)]


@pytest.mark.parametrize(("release", "name"), STEPS)
def test_step(found: runs.Found, release: str, name: str) -> None:
    outcome = found[release][name]
    assert outcome.ok, outcome.detail
