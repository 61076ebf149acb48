"""Container image references: their parts, and whether an image is NVIDIA's Triton.

Decides which references are valid and which repositories hold Triton. Must not know registry APIs
or who runs an image. The form ``[host[:port]/]path[:tag][@algorithm:digest]`` follows the OCI
distribution specification.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

_REFERENCE = re.compile(
    r"(?P<repository>(?:(?=[^/]*[.:])[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?/)?"
    r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*)*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?"
    r"(?:@(?P<digest>[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-fA-F]{32,}))?"
)
_MAX_LENGTH = 512

#: The last part of the name of NVIDIA's Triton image, in NVIDIA's registry and in mirrors.
TRITON = "tritonserver"


@dataclass(frozen=True, slots=True)
class Image:
    """An image reference. ``repository`` includes the registry's host if the reference
    names one."""

    repository: str
    tag: str | None
    digest: str | None

    @property
    def is_triton(self) -> bool:
        """Whether the name is that of NVIDIA's Triton image, whose own command is a shell."""
        return self.repository.rpartition("/")[2] == TRITON

    def matches(self, names: Collection[str]) -> bool:
        """Whether one of ``names`` equals the repository or its last parts; ``*`` matches
        any text."""
        patterns = (re.escape(name).replace(r"\*", ".*") for name in names)
        return any(re.fullmatch(rf"(.*/)?{pattern}", self.repository) for pattern in patterns)


def parse(reference: str) -> Image | None:
    """The parts of a reference; None if no container runtime would accept it."""
    match = _REFERENCE.fullmatch(reference) if len(reference) <= _MAX_LENGTH else None
    return Image(match["repository"], match["tag"], match["digest"]) if match else None
