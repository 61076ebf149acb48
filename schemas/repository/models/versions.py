"""The versions of one model that Triton would load.

Decides the problems of ``version_policy`` and of directories that Triton takes for versions. Must
not know the files in them.
"""

from __future__ import annotations

from amphitrite.schemas.repository.models import layout
from amphitrite.schemas.repository.models.model_context import ModelContext


def check(model: ModelContext) -> tuple[int, ...]:
    """Report problems of versions; return the versions whose files Triton would find."""
    existing = layout.version_directories(model.paths.directories)
    policy = model.config.child("version_policy")
    loaded = layout.versions_to_load(policy, existing)
    specific = policy.child("specific") if policy else None
    for version in existing:
        if layout.beyond_range(version):
            model.report.file(
                f"{model.name}/{existing[version]}",
                "version",
                "the version number is too large for Triton",
                fix="rename or remove the directory",
            )
    if specific is not None:
        missing = sorted(set(specific.numbers("versions")) - set(existing))
        if missing:
            model.report.field(
                specific, "versions", "version", f"no directory for version {', '.join(map(str, missing))}",
                severity="warning" if loaded else "error", allowed=", ".join(map(str, sorted(existing))) or "none",
            )  # fmt: skip
    if not loaded and not model.report.failed:
        latest = policy.child("latest") if policy else None
        if existing and latest is not None:
            model.report.field(latest, "num_versions", "version", "this policy loads no version", found="0",
                               allowed="1 or more", fix="add num_versions: 1")  # fmt: skip
        elif existing and specific is not None:
            model.report.field(specific, "", "version", "this policy loads no version", found="no number",
                               allowed=", ".join(map(str, sorted(existing))), fix="add versions: [ ... ]")  # fmt: skip
        elif not existing:
            model.report.model("no-version", "the model has no version directory",
                               fix=f"move its files to {model.name}/1/")  # fmt: skip
    for version in loaded:
        if existing[version] != str(version) and str(version) not in model.paths.directories:
            model.report.file(
                f"{model.name}/{existing[version]}",
                "version",
                f"Triton takes this directory for version {version}, but looks in `{model.name}/{version}`",
                fix=f"rename it to {version}, or to a name that does not begin with a digit",
            )
    return tuple(version for version in loaded if existing[version] == str(version))
