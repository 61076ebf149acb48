"""A cache of the objects of one namespace, and a history of its pods that the API server no longer
reports.

Decides that the newer of two versions counts, and what is kept of a pod. Must not know where
objects come from, nor what they mean for instances. All methods are thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from amphitrite.controlplane.runtimes.kubernetes.pods.container_exits import event_time, terminated
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_facts import Json, condition, is_ready, seconds, status
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_history import KEPT_ENDED, PodHistory
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import FETCHER, SERVER, WORKLOAD_LABEL

KINDS = ("Deployment", "Pod", "Event")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """``deployments``: by name. ``pods``: by workload label. ``events``: by pod uid,
    oldest first."""

    deployments: Mapping[str, Json] = field(default_factory=dict)
    pods: Mapping[str, tuple[Json, ...]] = field(default_factory=dict)
    events: Mapping[str, tuple[Json, ...]] = field(default_factory=dict)
    history: PodHistory = field(default_factory=PodHistory)


class ObjectCache:
    """``changed``: called after each change, without a lock held. ``clock``: seconds since the
    epoch."""

    def __init__(self, clock: Callable[[], float], changed: Callable[[], None]) -> None:
        self._clock, self._changed = clock, changed
        self._lock = threading.Lock()
        self._objects: dict[str, dict[str, Json]] = {kind: {} for kind in KINDS}
        self._listed: set[str] = set()
        #: By kind: the version up to which the watch has reported everything.
        self._versions: dict[str, int] = dict.fromkeys(KINDS, 0)
        self._history = PodHistory()

    @property
    def complete(self) -> bool:
        """Whether each kind has been listed, so that an object that is not cached does
        not exist."""
        with self._lock:
            return self._listed >= set(KINDS)

    def replace(self, kind: str, items: Iterable[Json], version: str) -> None:
        """Stores all objects of a kind at ``version``."""
        with self._lock:
            self._versions[kind] = _number(version)
            listed = {one["metadata"]["name"]: one for one in items}
            if kind == "Pod":
                for pod in listed.values():
                    self._record_history(pod)
                if {_uid(one) for one in self._objects[kind].values()} - {_uid(one) for one in listed.values()}:
                    self._history = replace(self._history, departed_at=self._clock())
            before, self._objects[kind] = self._objects[kind], listed
            changed = before != listed or kind not in self._listed
            self._listed.add(kind)
            self._forget()
        if changed:
            self._changed()

    def put(self, kind: str, item: Json) -> None:
        """Stores an object from a watch or an answer.

        Ignored if it is older than the cached version, or if the watch has since reported that the
        object is gone.
        """
        with self._lock:
            cached = self._objects[kind].get(item["metadata"]["name"])
            if _version(item) < (self._versions[kind] if cached is None else _version(cached)):
                return
            self._objects[kind][item["metadata"]["name"]] = item
            if kind == "Pod":
                self._record_history(item)
            ours = kind != "Event" or self._is_ours(item)
        if ours:
            self._changed()

    def remove(self, kind: str, item: Json) -> None:
        with self._lock:
            self._versions[kind] = max(self._versions[kind], _version(item))
            cached = self._objects[kind].get(item["metadata"]["name"])
            if cached is None or _uid(cached) != _uid(item):
                return
            del self._objects[kind][item["metadata"]["name"]]
            if kind == "Pod":
                self._history = replace(self._history, departed_at=self._clock())
                self._forget()
        if kind != "Event":  # The API server expires old events, which changes nothing.
            self._changed()

    def add_log(self, container_id: str, text: str) -> None:
        with self._lock:
            self._history = replace(self._history, logs={**self._history.logs, container_id: text})
        self._changed()

    def deployment(self, name: str) -> Json | None:
        with self._lock:
            return self._objects["Deployment"].get(name)

    def snapshot(self) -> Snapshot:
        with self._lock:
            pods: dict[str, list[Json]] = {}
            for pod in self._objects["Pod"].values():
                pods.setdefault(pod["metadata"]["labels"].get(WORKLOAD_LABEL, ""), []).append(pod)
            uids = {_uid(pod) for pod in self._objects["Pod"].values()}
            events: dict[str, list[Json]] = {}
            for event in self._objects["Event"].values():
                if (uid := event["involvedObject"].get("uid", "")) in uids:
                    events.setdefault(uid, []).append(event)
            return Snapshot(
                dict(self._objects["Deployment"]),
                {label: tuple(many) for label, many in pods.items()},
                {uid: tuple(sorted(many, key=event_time)) for uid, many in events.items()},
                self._history,
            )

    def _record_history(self, pod: Json) -> None:
        ready_at, ended = dict(self._history.ready_at), dict(self._history.ended)
        container = str(status(pod, SERVER).get("containerID", ""))
        if is_ready(pod) and container:
            turned = seconds(condition(pod, "Ready").get("lastTransitionTime"))
            ready_at.setdefault(container, turned or self._clock())
        for name in (FETCHER, SERVER):
            ended_state, place = terminated(pod, name), (_uid(pod), name)
            earlier = ended.get(place, ())
            if ended_state and all(one.get("containerID") != ended_state.get("containerID") for one in earlier):
                ended[place] = (*earlier, ended_state)[-KEPT_ENDED:]
        self._history = replace(self._history, ready_at=ready_at, ended=ended)

    def _is_ours(self, event: Json) -> bool:
        uid = event["involvedObject"].get("uid")
        return any(_uid(pod) == uid for pod in self._objects["Pod"].values())

    def _forget(self) -> None:
        """Drops the history of pods that are gone."""
        uids = {_uid(pod) for pod in self._objects["Pod"].values()}
        ended = {place: states for place, states in self._history.ended.items() if place[0] in uids}
        ids = {str(one.get("containerID")) for states in ended.values() for one in states}
        ids |= {str(status(pod, SERVER).get("containerID")) for pod in self._objects["Pod"].values()}
        self._history = replace(
            self._history,
            ended=ended,
            ready_at={one: at for one, at in self._history.ready_at.items() if one in ids},
            logs={one: text for one, text in self._history.logs.items() if one in ids},
        )


def _uid(item: Json) -> str:
    return str(item["metadata"].get("uid", ""))


def _version(item: Json) -> int:
    return _number(item["metadata"].get("resourceVersion"))


def _number(version: Any) -> int:
    """Resource versions of one kind are compared as numbers, which is how the Kubernetes API itself
    compares them."""
    return int(version) if str(version).isdigit() else 0
