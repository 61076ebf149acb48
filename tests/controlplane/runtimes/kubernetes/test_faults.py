"""Recordings of everything that went wrong on a real node, and what each of them is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from amphitrite.controlplane.core.observed.observations import ModelFetch
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_history import PodHistory

from .recordings import Recording, condition, recorded, server, stamp


@dataclass(frozen=True)
class Row:
    """``exits``: (exit code, part of the reason) of the ended attempts, oldest first."""

    name: str
    code: str
    message: str
    exits: tuple[tuple[int | None, str | None], ...] = ()
    lacks_capacity: bool = False


#: All that the kubelet keeps of a log is its last 2 KiB.
UNLOADED = "error: creating server: Internal - failed to load all models"
NO_PROGRAM = "the container cannot start: "
REFUSED = "the model could not be downloaded: the control plane refuses the model: 401"
ROWS = (
    Row(
        "gpus",
        "PodUnschedulable",
        "no node accepts the pod: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu",
        lacks_capacity=True,
    ),
    Row(
        "selector",
        "PodUnschedulable",
        "no node accepts the pod: 0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector",
    ),
    Row(
        "claim",
        "PodUnschedulable",
        'no node accepts the pod: 0/1 nodes are available: persistentvolumeclaim "absent" not found. not found',
    ),
    Row("image", "ImagePullLoopBackOff", "the image registry.invalid/tritonserver:none cannot be pulled: "),
    Row("name", "ImagePullLoopBackOff", "the image Not An Image cannot be pulled: "),
    Row("program", "KubernetesCrashLoopBackOff", NO_PROGRAM, ((None, None), (128, NO_PROGRAM))),
    Row("crash", "KubernetesCrashLoopBackOff", UNLOADED, ((None, None), (1, UNLOADED))),
    Row("memory", "PodOutOfMemory", "inference-server was killed because it exceeded its memory limit of 320Mi"),
    Row("model", "ResourceNotReady", "the model could not be downloaded: 198.18.254.1:", ((None, None), (1, "404"))),
    Row("grant", "ResourceNotReady", REFUSED, ((None, None), (1, REFUSED))),
    Row("forbidden", "InvalidDeploymentSpec", "no pod can be created: violates PodSecurity"),
    Row("quota", "OutOfQuota", "no pod can be created: exceeded quota: full, requested: requests.memory=64Mi"),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_recorded_failure(row: Row) -> None:
    found = recorded(row.name).observed()
    for fault in (one.fault for one in found if one.phase != "exited"):
        assert fault is not None
        assert (fault.code, fault.lacks_capacity) == (row.code, row.lacks_capacity)
        assert row.message in fault.message
        assert fault.hint
        assert fault.since >= 0
    ended = [one for one in found if one.phase == "exited"]
    if row.exits:
        assert [one.exit_code for one in ended] == [code for code, _ in row.exits]
        assert all((reason or "") in (one.reason or "") for one, (_, reason) in zip(ended, row.exits, strict=True))


def test_a_fault_says_the_same_as_long_as_it_lasts() -> None:
    """No counters, no random names: it becomes an event once."""
    before = recorded("image").living()
    later = recorded("image")
    for status in (*later.pod["status"]["initContainerStatuses"], *later.pod["status"]["containerStatuses"]):
        waiting = status["state"].get("waiting", {})
        if waiting.get("reason") == "ImagePullBackOff":
            image = status["image"] or "registry.invalid/tritonserver:none"
            cause = waiting["message"].split("ErrImagePull: ", 1)[-1]
            status["state"] = {"waiting": {"reason": "ErrImagePull", "message": cause}}
            assert f'"{image}"' in waiting["message"]
    assert before.fault is not None
    assert later.living().fault == before.fault
    assert "ep-quota-1-758f84c55f" not in str(recorded("quota").observed()[0].fault)


def test_room_may_have_been_made_since() -> None:
    rec = recorded("gpus")
    (first,) = (one.fault for one in rec.observed())
    (later,) = (one.fault for one in rec.observed(PodHistory(departed_at=9e9)))
    assert first is not None
    assert later == replace(first, since=9e9)


def test_the_log_says_more_than_the_status() -> None:
    rec = recorded("crash")
    told = server(rec.pod)
    ended = (told["state"].get("terminated") or told["lastState"]["terminated"])["containerID"]
    log = "2026-11-21T07:00:00Z E 1 model.cc:1] \"failed to load 'tiny' version 7: because\"\nlast words\n"
    fault = next(i.fault for i in rec.observed(PodHistory(logs={ended: log})) if i.phase != "exited")
    assert fault is not None
    assert fault.message == (
        "failed to load 'tiny' version 7: because; inference-server keeps crashing (exit code 1); "
        "its log ends with: last words"
    )


# -- what was not recorded, made from what was -----------------------------------------------------
def _unready(rec: Recording) -> None:
    condition(rec.pod, "Ready").update(status="False", lastTransitionTime=stamp(600))
    rec.events.append(
        _event(rec, "Unhealthy", 'Readiness probe failed: Get "http://198.18.0.9:8000": deadline exceeded\n')
    )


def _stuck(rec: Recording) -> None:
    rec.pod["status"]["phase"] = "Pending"
    for part in ("initContainerStatuses", "containerStatuses"):
        for status in rec.pod["status"][part]:
            status.update(state={"waiting": {"reason": "PodInitializing"}}, lastState={}, restartCount=0)
    condition(rec.pod, "Ready").update(status="False")
    rec.events.append(
        _event(rec, "FailedMount", 'MountVolume.SetUp failed for volume "model":\n hostPath type check failed')
    )


def _config(rec: Recording) -> None:
    server(rec.pod).update(state={"waiting": {"reason": "CreateContainerConfigError", "message": "no such user"}})
    condition(rec.pod, "Ready").update(status="False")


def _event(rec: Recording, reason: str, message: str, at: int = 601) -> dict[str, Any]:
    about = {"uid": rec.pod["metadata"]["uid"], "kind": "Pod"}
    return {
        "metadata": {"name": reason},
        "involvedObject": about,
        "reason": reason,
        "message": message,
        "lastTimestamp": stamp(at),
    }


MADE: list[tuple[str, Callable[[Recording], None], str, str]] = [
    ("readiness probe", _unready, "ResourceNotReady", "it was ready and no longer is: Readiness probe failed: Get"),
    ("volume", _stuck, "ResourceNotReady", "the pod cannot be set up: FailedMount: MountVolume.SetUp failed"),
    ("configuration", _config, "InvalidDeploymentSpec", "container inference-server cannot be created: CreateCon"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "code", "message"), MADE, ids=[row[0] for row in MADE])
def test_other_failures(name: str, change: Callable[[Recording], None], code: str, message: str) -> None:
    rec = recorded("ready")
    change(rec)
    (found,) = rec.observed()
    assert found.fault is not None
    assert (found.fault.code, found.phase == "unready") == (code, name == "readiness probe")
    assert message in found.fault.message


def restarted(rec: Recording, began: int, ended: int, **told: Any) -> Recording:
    """The server has ended once and runs again."""
    one = {"containerID": "containerd://first", "exitCode": 0, "reason": "Completed", **told}
    one |= {"startedAt": stamp(began), "finishedAt": stamp(ended)}
    server(rec.pod).update(
        restartCount=1, lastState={"terminated": one}, state={"running": {"startedAt": stamp(ended + 1)}}
    )
    return rec


@pytest.mark.parametrize("kind", ["liveness", "startup"])
def test_a_probe_that_ended_the_server_is_its_reason(kind: str) -> None:
    rec = restarted(recorded("ready"), 0, 300)
    told = f"{kind.capitalize()} probe failed: HTTP probe failed with statuscode: 500"
    rec.events += [
        _event(rec, "Unhealthy", told, 290),
        _event(rec, "Killing", f"Container inference-server failed {kind} probe, will be restarted", 291),
    ]
    (ended,) = (one for one in rec.observed() if one.phase == "exited")
    assert ended.reason == f"the kubelet killed it: {told}"


def test_who_loads_longer_than_the_startup_probe_allows_had_served() -> None:
    """Even if nobody saw it: so it is no failure to load."""
    long, short = restarted(recorded("ready"), 0, 700, exitCode=1), restarted(recorded("ready"), 0, 20, exitCode=1)
    assert [one.ready_at is not None for one in long.observed() if one.phase == "exited"] == [True]
    assert [one.ready_at is not None for one in short.observed() if one.phase == "exited"] == [False]
    seen = PodHistory(ready_at={"containerd://first": 5.0})
    assert [one.ready_at for one in short.observed(seen) if one.phase == "exited"] == [5.0]


def test_exit_codes_are_told_as_by_a_process_of_our_own() -> None:
    rec = restarted(recorded("ready"), 0, 20, exitCode=137, reason="Error")
    (ended,) = (one for one in rec.observed() if one.phase == "exited")
    assert ended.exit_code == -9
    assert "SIGKILL" in (ended.reason or "")


def test_how_the_model_came() -> None:
    (found,) = recorded("ready").observed()
    assert found.model_fetch is not None
    assert found.model_fetch == ModelFetch(False, 121, found.model_fetch.seconds)
    assert (found.fault, found.engine) == (None, "Triton of tritonserver:26.04-py3")
