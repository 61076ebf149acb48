"""Rules for instance groups: the number of copies of a model, and their devices.

Decides the problems that Triton finds on a server with a number of GPUs
(``NormalizeInstanceGroup``, ``ValidateInstanceGroup``). Must not know tensors.
"""

from __future__ import annotations

from amphitrite.schemas.repository.config.syntax_tree import Message
from amphitrite.schemas.repository.files.file_listing import Server
from amphitrite.schemas.repository.models.rule_report import Report

_AUTO, _GPU, _CPU, _MODEL = 0, 1, 2, 3


def check(report: Report, config: Message, server: Server, platform: str) -> None:
    """Report problems of ``instance_group``."""
    for group in config.children("instance_group"):
        kind, count = group.number("kind"), group.number("count")
        if count < 0:
            report.field(group, "count", "instance-count", "Triton treats a negative count as 1", severity="warning",
                         found=str(count), allowed="1 or more")  # fmt: skip
        if kind not in (_AUTO, _GPU, _CPU, _MODEL):
            report.field(group, "kind", "instance-kind", "unknown kind", found=str(kind),
                         allowed="KIND_AUTO, KIND_GPU, KIND_CPU, KIND_MODEL")  # fmt: skip
        if kind in (_CPU, _MODEL) and group.has("gpus"):
            report.field(
                group,
                "gpus",
                "instance-gpus",
                f"a group of {group.enum_name('kind')} must not have GPUs",
                fix="remove `gpus`, or use KIND_GPU",
            )
        if kind == _GPU or (kind == _AUTO and group.has("gpus")):
            _check_gpus(report, group, server)
        if platform != "tensorrt_plan" and group.has("profile"):
            report.field(
                group, "profile", "tensorrt-only", "only TensorRT models may have `profile`", fix="remove `profile`"
            )


def _check_gpus(report: Report, group: Message, server: Server) -> None:
    """Report missing GPUs. A server without any serves the group on the CPU."""
    gpus = group.numbers("gpus")
    field = "kind" if group.has("kind") else "gpus"
    fix = "use KIND_CPU, or an instance type with a GPU"
    if group.number("kind") == _AUTO and server.gpus:
        beyond = [gpu for gpu in gpus if not 0 <= gpu < server.gpus]
        if beyond:  # Triton would then use the CPU, which has no GPUs.
            report.field(group, "gpus", "instance-gpus", "the instance does not have this GPU", found=str(beyond[0]),
                         allowed=_numbers(server.gpus))  # fmt: skip
        return
    if not server.gpus:
        where = "where an instance has no GPU" if server.gpus is None else "because the instance has no GPU"
        text = f"this group is served on the CPU, {where}"
        report.field(group, field, "instance-gpus", text, severity="warning", found=group.enum_name("kind"), fix=fix)
        return
    for index, gpu in enumerate(gpus):
        if not 0 <= gpu < server.gpus:
            report.field(group, "gpus", "instance-gpus", "the instance does not have this GPU", found=str(gpu),
                         allowed=_numbers(server.gpus), index=index)  # fmt: skip


def _numbers(gpus: int) -> str:
    return "0" if gpus == 1 else f"0 to {gpus - 1}"
