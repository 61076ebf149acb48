"""No thread of a control plane ends unseen: it goes on after a failure, or the process ends with
it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, cast

import pytest

from amphitrite.controlplane.auth.oidc_keys import IssuerKeys
from amphitrite.controlplane.leadership.leader_tasks import LeaderTasks
from amphitrite.controlplane.process.threads import Threads, log_unhandled
from amphitrite.controlplane.runtimes.kubernetes.client.watches import Watch
from amphitrite.dataplane.machine import kept_tasks

from ...waiting import wait_until


class Unlucky:
    """Fails at first, and then does its work until it is told to end."""

    def __init__(self, failures: int = 2) -> None:
        self.left, self.works, self.stop = failures, threading.Event(), threading.Event()

    def __call__(self, *_: object, **__: object) -> Any:
        if self.left:
            self.left -= 1
            raise RuntimeError("one of a kind that nobody thought of")
        self.works.set()
        self.stop.wait(60)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_tasks, "PAUSE_S", 0.01)


@pytest.fixture
def stop() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def of_the_process(task: Unlucky, stop: threading.Event, stack: ExitStack) -> None:
    Threads(stack, stop, 10).start("task", task, lambda: (stop.set(), task.stop.set()))  # type: ignore[arg-type, return-value]


def of_the_leader(task: Unlucky, stop: threading.Event, stack: ExitStack) -> None:
    reconciler = SimpleNamespace(run=lambda term: term.wait(), wake=lambda: None)
    tasks = LeaderTasks(cast(Any, reconciler), [("task", task)])
    term = threading.Thread(target=tasks, args=(stop,))
    term.start()
    stack.callback(lambda: (stop.set(), task.stop.set(), term.join(10)))


def of_an_issuer(task: Unlucky, stop: threading.Event, stack: ExitStack) -> None:
    keys = IssuerKeys("https://issuer", lambda: None, task)
    thread = threading.Thread(target=keys.run, args=(stop,))
    thread.start()
    stack.callback(lambda: (stop.set(), task.stop.set(), thread.join(10)))


def of_a_watch(task: Unlucky, stop: threading.Event, stack: ExitStack) -> None:
    watch = Watch(cast(Any, SimpleNamespace(get=task)), "/pods", {}, lambda *_: None, lambda *_: None)
    stack.callback(lambda: (task.stop.set(), watch.close()))


@pytest.mark.parametrize("begin", [of_the_process, of_the_leader, of_an_issuer, of_a_watch])
def test_a_task_that_fails_is_logged_and_goes_on(
    begin: Callable[[Unlucky, threading.Event, ExitStack], None],
    stop: threading.Event,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("amphitrite.controlplane.auth.oidc_keys.RETRY_S", 0.01)
    monkeypatch.setattr("amphitrite.controlplane.runtimes.kubernetes.client.watches.PAUSE_MAX_S", 0.01)
    task = Unlucky()
    with ExitStack() as stack:
        begin(task, stop, stack)
        assert task.works.wait(60)
    assert any(record.exc_info and record.levelno == logging.ERROR for record in caplog.records)


@pytest.mark.parametrize("end", [None, RuntimeError("fault"), SystemExit(3)])
def test_the_process_ends_with_a_thread_that_it_cannot_be_without(
    end: BaseException | None, stop: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    def task() -> None:
        if end is not None:
            raise end

    with ExitStack() as stack:
        threads = Threads(stack, stop, 10)
        threads.start_once("web", task, lambda: None)
        assert stop.wait(60)
        assert threads.lost == "web"
    assert "the thread web has ended, so the control plane ends" in caplog.text
    assert end is None or type(end).__name__ in caplog.text


def test_the_end_that_was_asked_for_is_no_loss(stop: threading.Event) -> None:
    with ExitStack() as stack:
        threads = Threads(stack, stop, 10)
        threads.start_once("web", lambda: bool(stop.wait(60)) and None, stop.set)
    assert threads.lost is None


def test_what_no_thread_catches_is_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(threading, "excepthook", log_unhandled)
    threading.Thread(target=Unlucky(), name="somebody's").start()
    wait_until(lambda: "the thread somebody's ended by RuntimeError" in caplog.text, "it is logged")
