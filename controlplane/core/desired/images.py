"""Names of container images: their parts, and whether one is NVIDIA's Triton.

Decides what a reference may look like and which repositories hold Triton. Must not know registries' APIs, nor who runs
an image. The form is that of the OCI distribution specification: ``[host[:port]/]path[:tag][@algorithm:digest]``.
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
_LONGEST = 512

#: The last part of the names under which NVIDIA's image is known, at NVIDIA's registry and at its mirrors.
TRITON = "tritonserver"


@dataclass(frozen=True, slots=True)
class Image:
    """``repository`` with its registry's host, if one is named."""

    repository: str
    tag: str | None
    digest: str | None

    @property
    def is_triton(self) -> bool:
        """By its name it is NVIDIA's Triton, whose own command is a shell."""
        return self.repository.rpartition("/")[2] == TRITON

    def matches(self, names: Collection[str]) -> bool:
        """Whether one of ``names`` is this repository: all of it or its last parts; ``*`` stands for any text."""
        patterns = (re.escape(name).replace(r"\*", ".*") for name in names)
        return any(re.fullmatch(rf"(.*/)?{pattern}", self.repository) for pattern in patterns)


def parse(reference: str) -> Image | None:
    """None for what no container runtime would pull."""
    match = _REFERENCE.fullmatch(reference) if len(reference) <= _LONGEST else None
    return Image(match["repository"], match["tag"], match["digest"]) if match else None
