"""Keeping up with the API server: list, watch, and again when that breaks; and which of two
versions counts."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from amphitrite.controlplane.runtimes.kubernetes.client.watches import Watch
from amphitrite.controlplane.runtimes.kubernetes.pods.object_cache import KINDS, ObjectCache
from amphitrite.schemas.errors import Error

from .recordings import a_pod, server

Found = dict[str, Any]


def thing(name: str, version: int) -> Found:
    return {"metadata": {"name": name, "uid": name, "resourceVersion": str(version)}}


class ApiServer:
    """Answers from a script: each entry is what one request gets. ``asked``: the queries. Then it
    waits."""

    def __init__(self, *script: Found | Error | list[tuple[str, Found] | Error]) -> None:
        self._script, self.asked = list(script), list[Found]()
        self.over = threading.Event()

    def get(self, path: str, **query: Any) -> Found:
        answer = self._next(query)
        assert isinstance(answer, dict)
        return answer

    def watch(self, path: str, **query: Any) -> Stream:
        answer = self._next(query)
        assert isinstance(answer, list)
        return Stream(answer, self.over if not self._script else None)

    def _next(self, query: Found) -> Any:
        self.asked.append(query)
        answer = self._script.pop(0) if self._script else []
        if isinstance(answer, Error):
            raise answer
        return answer


class Stream:
    """``over``: when it ends by itself; None: at once."""

    def __init__(self, events: list[Any], over: threading.Event | None) -> None:
        self._events, self._over, self._closed = events, over, threading.Event()

    def __iter__(self) -> Iterator[tuple[str, Found]]:
        for event in self._events:
            if isinstance(event, Error):
                raise event
            yield event
        if self._over is not None:
            self._over.set()
            self._closed.wait(10.0)

    def close(self) -> None:
        self._closed.set()


def listed(*items: Found, version: int, more: str | None = None) -> Found:
    return {"items": list(items), "metadata": {"resourceVersion": str(version), **({"continue": more} if more else {})}}


def followed(api: ApiServer) -> tuple[list[Any], list[Found]]:
    """What the watch told, and what it asked, until the script is at its end."""
    told: list[Any] = []

    def all_of(items: Iterable[Found], version: str) -> None:
        told.append([one["metadata"]["name"] for one in items])

    watch = Watch(
        api,  # type: ignore[arg-type]
        "/api/v1/namespaces/ns/pods",
        {"labelSelector": "a=b"},
        all_of,
        lambda kind, one: told.append((kind, one["metadata"]["name"])),
    )
    assert api.over.wait(60.0)
    assert watch.problem is None
    watch.close()
    return told, api.asked


def test_a_list_then_what_happens_after_it() -> None:
    told, asked = followed(ApiServer(listed(thing("a", 1), version=5), [("ADDED", thing("b", 6))]))
    assert told == [["a"], ("ADDED", "b")]
    assert asked[1] == {"labelSelector": "a=b", "resourceVersion": "5"}


def test_a_long_list_comes_in_pages() -> None:
    told, asked = followed(ApiServer(listed(thing("a", 1), version=5, more="x"), listed(thing("b", 2), version=5), []))
    assert told == [["a", "b"]]
    assert asked[1]["continue"] == "x"


def test_a_watch_that_ends_goes_on_where_it_was_also_after_a_bookmark() -> None:
    _, asked = followed(ApiServer(listed(version=5), [("MODIFIED", thing("a", 7))], [("BOOKMARK", thing("", 9))], []))
    assert [query.get("resourceVersion") for query in asked] == [None, "5", "7", "9"]


def test_a_history_that_is_gone_is_listed_anew_at_once() -> None:
    told, asked = followed(
        ApiServer(listed(version=5), [Error("ResourceNotFound", "too old")], listed(thing("a", 8), version=8), [])
    )
    assert told == [[], ["a"]]
    assert [query.get("resourceVersion") for query in asked] == [None, "5", None, "8"]


def test_a_server_that_does_not_answer_is_asked_again() -> None:
    gone = Error("KubernetesUnaccessible", "no answer")
    told, _ = followed(ApiServer(gone, listed(version=5), [gone], listed(thing("a", 8), version=8), []))
    assert told == [[], ["a"]]


@pytest.mark.parametrize(("versions", "want"), [((1, 2), 2), ((2, 1), 2), ((2, 2), 2)])
def test_the_newer_version_counts_whoever_told_it(versions: tuple[int, ...], want: int) -> None:
    objects = ObjectCache(lambda: 1.0, lambda: None)
    for version in versions:
        objects.put("Deployment", thing("a", version))
    known = objects.deployment("a")
    assert known is not None
    assert known["metadata"]["resourceVersion"] == str(want)
    objects.remove("Deployment", {"metadata": {"name": "a", "uid": "another of this name"}})
    assert objects.deployment("a") is not None
    objects.remove("Deployment", thing("a", 3))
    assert objects.deployment("a") is None


@pytest.mark.parametrize("heard_by", ["watch", "list"])
def test_an_answer_that_comes_after_the_news_of_the_end_brings_nothing_back(heard_by: str) -> None:
    objects = ObjectCache(lambda: 1.0, lambda: None)
    objects.put("Deployment", thing("a", 3))
    if heard_by == "watch":
        objects.remove("Deployment", thing("a", 6))
    else:
        objects.replace("Deployment", [], "6")
    objects.put("Deployment", thing("a", 4))
    assert objects.deployment("a") is None
    objects.put("Deployment", thing("a", 7))
    assert objects.deployment("a") is not None, "another of this name"


def test_known_is_what_has_been_listed_once() -> None:
    changes: list[int] = []
    objects = ObjectCache(lambda: 1.0, lambda: changes.append(1))
    for kind in KINDS:
        assert not objects.complete
        objects.replace(kind, [], "5")
    assert objects.complete
    assert len(changes) == len(KINDS)
    objects.replace("Pod", [], "5")
    assert len(changes) == len(KINDS), "nothing has changed"


def test_what_was_seen_of_a_pod_is_kept_as_long_as_the_pod() -> None:
    objects = ObjectCache(lambda: 7.0, lambda: None)
    pod = a_pod("a")
    objects.put("Pod", pod)
    first = server(pod)["containerID"]
    told = {
        "containerID": first,
        "exitCode": 1,
        "startedAt": "2026-11-21T08:00:00Z",
        "finishedAt": "2026-11-21T08:00:01Z",
    }
    for number, restarts in (("second", 1), ("third", 2)):
        pod = a_pod("a")
        pod["metadata"]["resourceVersion"] = str(10**6 * restarts)
        server(pod).update(containerID=number, restartCount=restarts, lastState={"terminated": dict(told)})
        objects.put("Pod", pod)
        told["containerID"] = number
    objects.add_log(first, "its log")
    seen = objects.snapshot().history
    assert set(seen.ready_at) == {first, "second", "third"}
    assert [one["containerID"] for one in seen.ended[("uid-a", "inference-server")]] == [first, "second"]
    assert seen.logs == {first: "its log"}
    objects.remove("Pod", pod)
    seen = objects.snapshot().history
    assert (seen.ready_at, seen.ended, seen.logs, seen.departed_at) == ({}, {}, {}, 7.0)
