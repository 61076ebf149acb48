"""Where rules say what they found in one model.

Decides how a field of config.pbtxt, a file or the model as a whole becomes the place of a finding. Must not know rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from amphitrite.schemas.repository.config.syntax_tree import Message, Place
from amphitrite.schemas.repository.files.findings import FINDINGS_MAX, Finding, Severity


@dataclass(slots=True)
class Report:
    """``name``: the model's directory; ``config``: its config.pbtxt, None where there is none; ``directories``: those
    directly in the model's, in Triton's order."""

    name: str
    config: str | None
    directories: Sequence[str] = ()
    findings: list[Finding] = field(default_factory=list)

    def field(
        self,
        message: Message,
        name: str,
        code: str,
        text: str,
        *,
        severity: Severity = "error",
        found: str | None = None,
        allowed: str | None = None,
        near: str | None = None,
        fix: str | None = None,
        index: int | None = None,
    ) -> None:
        """About a field of a message: at its value (the ``index``-th), else where the message stands; an empty
        ``name`` is the message itself."""
        values = message.all(name) if name else ()
        place = message.place
        if values:
            place = values[index if index is not None and index < len(values) else -1].place
        path = message.path if not name else message.at(name) + (f"[{index}]" if index is not None else "")
        self.at(place, path, code, text, severity=severity, found=found, allowed=allowed, near=near, fix=fix)

    def at(
        self, place: Place, path: str, code: str, text: str, *, severity: Severity = "error", found: str | None = None,
        allowed: str | None = None, near: str | None = None, fix: str | None = None,
    ) -> None:  # fmt: skip
        """At a place of config.pbtxt; of the model where it has none."""
        if self.config is None:
            self.model(code, text, severity=severity, found=found, allowed=allowed, near=near, fix=fix)
        else:
            self.add(
                Finding(self.config, text, code, severity, place.line, place.column, path, found, allowed, near, fix)
            )

    def model(
        self,
        code: str,
        text: str,
        *,
        severity: Severity = "error",
        found: str | None = None,
        allowed: str | None = None,
        near: str | None = None,
        fix: str | None = None,
    ) -> None:
        """About the model as a whole: in its config.pbtxt where it has one."""
        self.file(
            self.config or self.name, code, text, severity=severity, found=found, allowed=allowed, near=near, fix=fix
        )

    def file(
        self, path: str, code: str, text: str, *, severity: Severity = "error", line: int | None = None,
        column: int | None = None, found: str | None = None, allowed: str | None = None, near: str | None = None,
        fix: str | None = None,
    ) -> None:  # fmt: skip
        """About a file; ``path`` relative to the repository."""
        self.add(Finding(path, text, code, severity, line, column, "", found, allowed, near, fix))

    def add(self, finding: Finding) -> None:
        if len(self.findings) < FINDINGS_MAX and finding not in self.findings:
            self.findings.append(finding)

    @property
    def failed(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings)
