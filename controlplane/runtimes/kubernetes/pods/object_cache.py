"""What the watches have told last: the objects of one namespace, and what was seen of pods that is no longer told.

Decides that the newer of two versions counts, and what is remembered of a pod. Must not know how objects get here, nor
what they mean for instances. All methods may be called from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from amphitrite.controlplane.runtimes.kubernetes.pods.container_exits import event_time, terminated
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_facts import Json, condition, is_ready, seconds, status
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_history import KEPT_ENDED, Seen
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import FETCHER, SERVER, WORKLOAD_LABEL

KINDS = ("Deployment", "Pod", "Event")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """``deployments`` by name, ``pods`` by the workload label, ``events`` by the pod's uid, oldest first."""

    deployments: Mapping[str, Json] = field(default_factory=dict)
    pods: Mapping[str, tuple[Json, ...]] = field(default_factory=dict)
    events: Mapping[str, tuple[Json, ...]] = field(default_factory=dict)
    seen: Seen = field(default_factory=Seen)


class Objects:
    """``changed`` is called after each change, outside of any lock. ``clock``: seconds since the epoch."""

    def __init__(self, clock: Callable[[], float], changed: Callable[[], None]) -> None:
        self._clock, self._changed = clock, changed
        self._lock = threading.Lock()
        self._found: dict[str, dict[str, Json]] = {kind: {} for kind in KINDS}
        self._listed: set[str] = set()
        #: Of each kind: up to this version the watch has told everything.
        self._told: dict[str, int] = dict.fromkeys(KINDS, 0)
        self._seen = Seen()

    @property
    def complete(self) -> bool:
        """Each kind has been listed once: what is not here is not there."""
        with self._lock:
            return self._listed >= set(KINDS)

    def replace(self, kind: str, items: Iterable[Json], version: str) -> None:
        """All there are at ``version``."""
        with self._lock:
            self._told[kind] = _number(version)
            found = {one["metadata"]["name"]: one for one in items}
            if kind == "Pod":
                for pod in found.values():
                    self._remember(pod)
                if {_uid(one) for one in self._found[kind].values()} - {_uid(one) for one in found.values()}:
                    self._seen = replace(self._seen, departed_at=self._clock())
            before, self._found[kind] = self._found[kind], found
            news = before != found or kind not in self._listed
            self._listed.add(kind)
            self._forget()
        if news:
            self._changed()

    def put(self, kind: str, found: Json) -> None:
        """As a watch or an answer tells it. An older version than the one that is known changes nothing, and neither
        does an answer about an object that the watch has told to be gone meanwhile."""
        with self._lock:
            known = self._found[kind].get(found["metadata"]["name"])
            if _version(found) < (self._told[kind] if known is None else _version(known)):
                return
            self._found[kind][found["metadata"]["name"]] = found
            if kind == "Pod":
                self._remember(found)
            ours = kind != "Event" or self._is_ours(found)
        if ours:
            self._changed()

    def remove(self, kind: str, found: Json) -> None:
        with self._lock:
            self._told[kind] = max(self._told[kind], _version(found))
            known = self._found[kind].get(found["metadata"]["name"])
            if known is None or _uid(known) != _uid(found):
                return
            del self._found[kind][found["metadata"]["name"]]
            if kind == "Pod":
                self._seen = replace(self._seen, departed_at=self._clock())
                self._forget()
        if kind != "Event":  # The API server drops old ones; nothing has changed by that.
            self._changed()

    def add_log(self, container_id: str, text: str) -> None:
        with self._lock:
            self._seen = replace(self._seen, logs={**self._seen.logs, container_id: text})
        self._changed()

    def deployment(self, name: str) -> Json | None:
        with self._lock:
            return self._found["Deployment"].get(name)

    def snapshot(self) -> Snapshot:
        with self._lock:
            pods: dict[str, list[Json]] = {}
            for pod in self._found["Pod"].values():
                pods.setdefault(pod["metadata"]["labels"].get(WORKLOAD_LABEL, ""), []).append(pod)
            uids = {_uid(pod) for pod in self._found["Pod"].values()}
            events: dict[str, list[Json]] = {}
            for event in self._found["Event"].values():
                if (uid := event["involvedObject"].get("uid", "")) in uids:
                    events.setdefault(uid, []).append(event)
            return Snapshot(
                dict(self._found["Deployment"]),
                {label: tuple(many) for label, many in pods.items()},
                {uid: tuple(sorted(many, key=event_time)) for uid, many in events.items()},
                self._seen,
            )

    def _remember(self, pod: Json) -> None:
        ready_at, ended = dict(self._seen.ready_at), dict(self._seen.ended)
        container = str(status(pod, SERVER).get("containerID", ""))
        if is_ready(pod) and container:
            turned = seconds(condition(pod, "Ready").get("lastTransitionTime"))
            ready_at.setdefault(container, turned or self._clock())
        for name in (FETCHER, SERVER):
            told, place = terminated(pod, name), (_uid(pod), name)
            known = ended.get(place, ())
            if told and all(one.get("containerID") != told.get("containerID") for one in known):
                ended[place] = (*known, told)[-KEPT_ENDED:]
        self._seen = replace(self._seen, ready_at=ready_at, ended=ended)

    def _is_ours(self, event: Json) -> bool:
        uid = event["involvedObject"].get("uid")
        return any(_uid(pod) == uid for pod in self._found["Pod"].values())

    def _forget(self) -> None:
        """What is about pods that are gone."""
        uids = {_uid(pod) for pod in self._found["Pod"].values()}
        ended = {place: told for place, told in self._seen.ended.items() if place[0] in uids}
        ids = {str(one.get("containerID")) for told in ended.values() for one in told}
        ids |= {str(status(pod, SERVER).get("containerID")) for pod in self._found["Pod"].values()}
        self._seen = replace(
            self._seen,
            ended=ended,
            ready_at={one: at for one, at in self._seen.ready_at.items() if one in ids},
            logs={one: text for one, text in self._seen.logs.items() if one in ids},
        )


def _uid(found: Json) -> str:
    return str(found["metadata"].get("uid", ""))


def _version(found: Json) -> int:
    return _number(found["metadata"].get("resourceVersion"))


def _number(version: Any) -> int:
    """Of one kind, later is more: so the API's own comparison of resource versions defines it."""
    return int(version) if str(version).isdigit() else 0
