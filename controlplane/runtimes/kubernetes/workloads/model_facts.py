"""What a model version's files mean for its pod: how many bytes are loaded, how many Python
processes Triton starts, and which configurations a pod without a GPU needs.

Decides how Python instances are counted from ``config.pbtxt`` (Triton's ``instance_group``). Must
not know where files are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from amphitrite.dataplane.triton.cpu_configuration import CpuConfiguration, on_cpu
from amphitrite.schemas.repository.files.file_listing import TEXT_BYTES_MAX

_COMMENT = re.compile(r"#[^\n]*")
_PYTHON = re.compile(r"""\bbackend\s*:\s*["']python["']""")
_BACKEND = re.compile(r"""\b(?:backend|platform)\s*:\s*["']""")
_GROUP = re.compile(r"\binstance_group\s*:?\s*(?P<list>\[)?")
_COUNT = re.compile(r"\bcount\s*:\s*(\d+)")
_NESTED = re.compile(r"\{[^{}]*\}")
_KIND = re.compile(r"\bkind\s*:\s*KIND_(\w+)")

#: The maximum instances that Triton creates for a Python model without ``instance_group``.
DEFAULT_INSTANCES = 2


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """``size``: bytes of all files. ``cpu_instances``: Python processes. ``gpu_instances``: Python
    processes for each GPU. ``on_cpu``: what config.pbtxt must say in a pod without a GPU."""

    size: int
    cpu_instances: int = 0
    gpu_instances: int = 0
    on_cpu: tuple[CpuConfiguration, ...] = ()

    def python_instances(self, gpus: int) -> int:
        """Python processes in a pod with that many GPUs. Without GPUs all are on the CPU."""
        return self.cpu_instances + self.gpu_instances * max(gpus, 1)


def model_facts(files: Iterable[tuple[str, int]], read: Callable[[str], str]) -> ModelFacts:
    """``files``: (path, size) of a repository. ``read``: returns the text of one of its paths."""
    sizes = dict(files)
    cpu = gpu = 0
    for model in sorted({path.split("/", 1)[0] for path in sizes if "/" in path}):
        mine = [path for path in sizes if path.startswith(f"{model}/")]
        config = f"{model}/config.pbtxt"
        text = _COMMENT.sub("", read(config)) if config in sizes else ""
        guessed = not _BACKEND.search(text) and any(path.endswith("/model.py") for path in mine)
        if _PYTHON.search(text) or guessed:
            for kind, count in _groups(text) or [("AUTO", DEFAULT_INSTANCES)]:
                cpu, gpu = (cpu, gpu + count) if kind == "GPU" else (cpu + count, gpu)
    small = [path for path, size in sizes.items() if size <= TEXT_BYTES_MAX]
    return ModelFacts(sum(sizes.values()), cpu, gpu, on_cpu(small, read))


def _groups(text: str) -> list[tuple[str, int]]:
    """(kind, count) of each instance group, in both spellings of a repeated field in Protocol
    Buffers' text format."""
    result = []
    for match in _GROUP.finditer(text):
        rest = text[match.end() :]
        for body in _messages(rest, many=bool(match["list"])):
            own = body
            while _NESTED.search(own):  # A group's resources have counts of their own.
                own = _NESTED.sub("", own)
            kind, count = _KIND.search(own), _COUNT.search(own)
            result.append((kind[1] if kind else "AUTO", int(count[1]) if count else 1))
    return result


def _messages(text: str, *, many: bool) -> list[str]:
    """The contents of the ``{...}`` at the start of ``text``: one, or all until the end of the
    list."""
    result, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character == "{":
            depth, start = depth + 1, start if depth else position + 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                result.append(text[start:position])
                if not many:
                    return result
        elif character == "]" and depth == 0:
            return result
    return result
