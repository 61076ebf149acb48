"""The versions of one model that Triton would load.

Decides what is wrong with ``version_policy`` and with directories that Triton takes for versions. Must not know files
in them."""

from __future__ import annotations

from amphitrite.schemas.repository.models import layout
from amphitrite.schemas.repository.models.model_subject import Subject


def check(model: Subject) -> tuple[int, ...]:
    existing = layout.version_directories(model.paths.directories)
    policy = model.config.child("version_policy")
    loaded = layout.versions_to_load(policy, existing)
    specific = policy.child("specific") if policy else None
    for version in existing:
        if layout.beyond_range(version):
            model.report.file(
                f"{model.name}/{existing[version]}",
                "version",
                "no version is that large; Triton ends here",
                fix="rename or remove the directory",
            )
    if specific is not None:
        missing = sorted(set(specific.numbers("versions")) - set(existing))
        if missing:
            model.report.field(
                specific, "versions", "version", f"there is no version {', '.join(map(str, missing))}",
                severity="warning" if loaded else "error", allowed=", ".join(map(str, sorted(existing))) or "none",
            )  # fmt: skip
    if not loaded and not model.report.failed:
        latest = policy.child("latest") if policy else None
        if existing and latest is not None:
            model.report.field(latest, "num_versions", "version", "this loads no version at all", found="0",
                               allowed="1 or more", fix="add num_versions: 1")  # fmt: skip
        elif existing and specific is not None:
            model.report.field(specific, "", "version", "this loads no version at all", found="no number",
                               allowed=", ".join(map(str, sorted(existing))), fix="add versions: [ ... ]")  # fmt: skip
        elif not existing:
            model.report.model("no-version", "the model has no version directory",
                               fix=f"put its files into {model.name}/1/")  # fmt: skip
    for version in loaded:
        if existing[version] != str(version) and str(version) not in model.paths.directories:
            model.report.file(
                f"{model.name}/{existing[version]}", "version",
                f"Triton takes this directory for version {version}, and looks for it in `{model.name}/{version}`",
                fix=f"rename it to {version}, or to a name that does not begin with a number",
            )  # fmt: skip
    return tuple(version for version in loaded if existing[version] == str(version))
