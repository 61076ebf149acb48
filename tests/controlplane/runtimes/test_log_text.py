"""One instance's part of the log of a deployment."""

from __future__ import annotations

import pytest

from amphitrite.controlplane.runtimes.log_text import select_instance
from amphitrite.schemas.errors import Error

ONE = "==> blue-0-1, exited, exit code 1 <==\na line\n==> not a heading\n"
OTHER = "==> blue-1-1, ready <==\n"


@pytest.mark.parametrize(
    ("instance", "wanted"), [("blue-0-1", ONE), ("blue-0", ONE), ("blue-1-1", OTHER), ("blue", ONE + OTHER)]
)
def test_only(instance: str, wanted: str) -> None:
    assert select_instance(ONE + OTHER, instance) == wanted


@pytest.mark.parametrize(
    ("text", "hint"), [(ONE + OTHER, "instances with a log: blue-0-1, blue-1-1"), ("", "instances with a log: none")]
)
def test_an_instance_that_is_not_there(text: str, hint: str) -> None:
    with pytest.raises(Error, match="no instance green has a log") as caught:
        select_instance(text, "green")
    assert (caught.value.code, caught.value.hint) == ("ResourceNotFound", hint)
