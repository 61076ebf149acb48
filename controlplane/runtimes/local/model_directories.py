"""A model's files as a container would find them: the same names below a directory of the instance's own.

Decides how the layout of a container comes about where none is run: by a link to the store's files. Must not know
Triton or who starts it.
"""

from __future__ import annotations

from pathlib import Path

from amphitrite.controlplane.core.desired.containers import Container

_NAME = "models"


def lay_out(instance: Path, container: Container, files: Path) -> tuple[Path, Path]:
    """What ``AZUREML_MODEL_DIR`` names and Triton's repository. ``instance``: the directory of the instance, where it
    is made unless it is there; ``files``: those of the model. Raises OSError."""
    if not container.folder:
        return files, files / (container.repository or "")
    model_dir = instance / _NAME
    model_dir.mkdir(mode=0o700, exist_ok=True)
    link = model_dir / container.folder
    link.unlink(missing_ok=True)
    link.symlink_to(files, target_is_directory=True)
    return model_dir, model_dir / (container.repository or "")
