"""Instance groups: how many copies of a model, and on what.

Decides what ``NormalizeInstanceGroup`` and ``ValidateInstanceGroup`` of Triton refuse on a server with so many GPUs.
Must not know tensors."""

from __future__ import annotations

from amphitrite.schemas.repository.config.syntax_tree import Message
from amphitrite.schemas.repository.files.file_listing import Server
from amphitrite.schemas.repository.files.findings import Severity
from amphitrite.schemas.repository.models.rule_report import Report

_AUTO, _GPU, _CPU, _MODEL = 0, 1, 2, 3


def check(report: Report, config: Message, server: Server, platform: str) -> None:
    for group in config.children("instance_group"):
        kind, count = group.number("kind"), group.number("count")
        if count < 0:
            report.field(group, "count", "instance-count", "a negative count means 1 to Triton", severity="warning",
                         found=str(count), allowed="1 or more")  # fmt: skip
        if kind not in (_AUTO, _GPU, _CPU, _MODEL):
            report.field(group, "kind", "instance-kind", "there is no such kind", found=str(kind),
                         allowed="KIND_AUTO, KIND_GPU, KIND_CPU, KIND_MODEL")  # fmt: skip
        if kind in (_CPU, _MODEL) and group.has("gpus"):
            report.field(
                group,
                "gpus",
                "instance-gpus",
                f"{group.word('kind')} has no GPUs",
                fix="remove `gpus`, or use KIND_GPU",
            )
        if kind == _GPU or (kind == _AUTO and group.has("gpus")):
            _check_gpus(report, group, server)
        if platform != "tensorrt_plan" and group.has("profile"):
            report.field(
                group, "profile", "tensorrt-only", "`profile` is for TensorRT models only", fix="remove `profile`"
            )


def _check_gpus(report: Report, group: Message, server: Server) -> None:
    """What is known of the server decides whether it is an error."""
    gpus = group.numbers("gpus")
    field = "kind" if group.has("kind") else "gpus"
    severity: Severity = "warning" if server.gpus is None else "error"
    fix = "use KIND_CPU, or an instance type with a GPU"
    if group.number("kind") == _AUTO and server.gpus:
        beyond = [gpu for gpu in gpus if not 0 <= gpu < server.gpus]
        if beyond:  # Triton takes the CPU then, which has no GPUs.
            report.field(group, "gpus", "instance-gpus", "no such GPU on this instance", found=str(beyond[0]),
                         allowed=_numbers(server.gpus))  # fmt: skip
        return
    if not server.gpus:
        text = "this needs a GPU" if server.gpus is None else "the instance has no GPU"
        report.field(group, field, "instance-gpus", text, severity=severity, found=group.word("kind"), fix=fix)
        return
    for index, gpu in enumerate(gpus):
        if not 0 <= gpu < server.gpus:
            report.field(group, "gpus", "instance-gpus", "no such GPU on this instance", found=str(gpu),
                         allowed=_numbers(server.gpus), index=index)  # fmt: skip


def _numbers(gpus: int) -> str:
    return "0" if gpus == 1 else f"0 to {gpus - 1}"
