"""What is said of a port that is in use."""

from __future__ import annotations

import errno
import os
import socket

import psutil
import pytest

from amphitrite.dataplane.machine import ports
from amphitrite.schemas.errors import Error


@pytest.mark.parametrize("known", [True, False])
def test_the_program_that_listens_is_named_where_it_can_be_seen(known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kind: str) -> None:
        raise psutil.AccessDenied

    if not known:
        monkeypatch.setattr(psutil, "net_connections", refuse)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Error) as caught:
            ports.require_free("127.0.0.1", port, "--port")
    program = f"{psutil.Process().name()} (pid {os.getpid()})" if known else "another program"
    stop = "stop that program" if known else "stop the program; root can see which one it is"
    assert (caught.value.code, caught.value.message, caught.value.hint) == (
        "PortInUse",
        f"port {port} on 127.0.0.1 is in use by {program}",
        f"choose another port with --port, or {stop}",
    )


@pytest.mark.parametrize(
    ("cause", "hint"),
    [
        (errno.EACCES, "ports below 1024 need root: choose another port with --port"),
        (errno.EADDRNOTAVAIL, "give --host an address of this machine, or 0.0.0.0 for all of them"),
        (errno.ENOBUFS, None),
    ],
)
def test_what_to_do_about_an_address_that_cannot_be_had(
    cause: int, hint: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a failure of our own: root may listen anywhere."""

    def refuse(self: socket.socket, address: object) -> None:
        raise OSError(cause, os.strerror(cause))

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(Error) as caught:
        ports.require_free("127.0.0.1", 80, "--port")
    assert caught.value.message == f"cannot listen on 127.0.0.1:80: {os.strerror(cause)}"
    assert caught.value.hint == hint
