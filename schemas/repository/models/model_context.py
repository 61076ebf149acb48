"""One model with all that rules need: its files, its configuration, its report.

Decides how config.pbtxt is read, and which directories a model has if an upload lost some. Must not
know rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amphitrite.schemas.repository.config import fields
from amphitrite.schemas.repository.config.syntax_tree import Message, Position
from amphitrite.schemas.repository.config.text_format import parse
from amphitrite.schemas.repository.files.file_listing import TEXT_BYTES_MAX, Repository, Server, read_text
from amphitrite.schemas.repository.models import layout
from amphitrite.schemas.repository.models.model_files import ModelFiles
from amphitrite.schemas.repository.models.rule_report import Report


@dataclass(frozen=True, slots=True)
class ModelContext:
    """The model to check.

    ``files``: those of the whole repository. ``paths``: those of this model. ``config``: an empty
    message if there is no config.pbtxt. ``readable``: whether config.pbtxt could be read, even if
    it has errors.
    """

    name: str
    files: Repository
    server: Server
    report: Report
    config: Message
    paths: ModelFiles
    readable: bool


def read(files: Repository, name: str, paths: Sequence[str], empty: Sequence[str], server: Server) -> ModelContext:
    """The model ``name``.

    ``paths``: its files, relative to its directory. ``empty``: its directories without files.
    """
    report = Report(name, f"{name}/{layout.CONFIG}" if layout.CONFIG in paths else None)
    config = _config(files, report, server)
    root = config or Message(fields.ROOT, Position(1, 1))
    lost_directories = layout.lost_versions(root, [*paths, *(f"{path}/" for path in empty)])
    model_files = ModelFiles(name, {path: files.sizes[f"{name}/{path}"] for path in paths}, [*empty, *lost_directories])
    report.directories = model_files.directories
    return ModelContext(name, files, server, report, root, model_files, config is not None)


def _config(files: Repository, report: Report, server: Server) -> Message | None:
    """The configuration, an empty one without a file; None if it cannot be read."""
    path = report.config
    if path is None:
        return Message(fields.ROOT, Position(1, 1))
    try:
        text = read_text(files, path)
    except OSError as exc:
        report.file(path, "unreadable", f"cannot read `{path}`: {exc.strerror or exc}")
        return None
    if text is None:
        allowed, found = f"at most {TEXT_BYTES_MAX} bytes", f"{files.sizes[path]} bytes"
        report.file(path, "too-large", f"`{path}` is too large", found=found, allowed=allowed)
        return None
    config, findings = parse(text, path, server.version)
    for finding in findings:
        report.add(finding)
    return config
