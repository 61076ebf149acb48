"""Collects the findings of rules about one model.

Decides the location of a finding about a field of config.pbtxt, a file or the whole model. Must not
know rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from amphitrite.schemas.repository.config.syntax_tree import Message, Position
from amphitrite.schemas.repository.files.findings import FINDINGS_MAX, Finding, Severity


@dataclass(slots=True)
class Report:
    """The findings about one model.

    ``name``: the model's directory. ``config``: its config.pbtxt, None if there is none.
    ``directories``: those directly below the model's directory, in Triton's order.
    """

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
        """Add a finding at the value of a field (the ``index``-th), or at its message.

        An empty ``name`` stands for the message itself.
        """
        values = message.all(name) if name else ()
        position = message.position
        if values:
            position = values[index if index is not None and index < len(values) else -1].position
        path = message.path if not name else message.at(name) + (f"[{index}]" if index is not None else "")
        self.at(position, path, code, text, severity=severity, found=found, allowed=allowed, near=near, fix=fix)

    def at(
        self,
        position: Position,
        path: str,
        code: str,
        text: str,
        *,
        severity: Severity = "error",
        found: str | None = None,
        allowed: str | None = None,
        near: str | None = None,
        fix: str | None = None,
    ) -> None:
        """Add a finding at a position of config.pbtxt, or about the model without one."""
        if self.config is None:
            self.model(code, text, severity=severity, found=found, allowed=allowed, near=near, fix=fix)
        else:
            self.add(
                Finding(
                    self.config, text, code, severity, position.line, position.column, path, found, allowed, near, fix
                )
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
        """Add a finding about the whole model, in its config.pbtxt if it has one."""
        self.file(
            self.config or self.name, code, text, severity=severity, found=found, allowed=allowed, near=near, fix=fix
        )

    def file(
        self, path: str, code: str, text: str, *, severity: Severity = "error", line: int | None = None,
        column: int | None = None, found: str | None = None, allowed: str | None = None, near: str | None = None,
        fix: str | None = None,
    ) -> None:  # fmt: skip
        """Add a finding about a file. ``path``: relative to the repository."""
        self.add(Finding(path, text, code, severity, line, column, "", found, allowed, near, fix))

    def add(self, finding: Finding) -> None:
        """Add a finding, unless it is a duplicate or there are too many."""
        if len(self.findings) < FINDINGS_MAX and finding not in self.findings:
            self.findings.append(finding)

    @property
    def failed(self) -> bool:
        """Whether there is an error."""
        return any(finding.severity == "error" for finding in self.findings)
