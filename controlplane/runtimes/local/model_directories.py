"""A model's files at the paths that a container would see, in a directory of the instance.

Decides how that directory is created where no container runs: with a link to the store's files.
Must not know Triton or who starts it.
"""

from __future__ import annotations

from pathlib import Path

from amphitrite.controlplane.core.desired.containers import Container

_NAME = "models"


def directories(instance: Path, files: Path) -> tuple[Path, ...]:
    """Where the model's files may be: in the store, and in the directory of the instance."""
    return (files, *(path for path in (instance / _NAME,) if path.is_dir()))


def create_model_dir(instance: Path, container: Container, files: Path) -> tuple[Path, Path]:
    """The directory for ``AZUREML_MODEL_DIR``, and Triton's model repository. Raises OSError.

    ``instance``: the directory of the instance, below which it is created. ``files``: the directory
    of the model's files.
    """
    if not container.folder:
        return files, files / (container.repository or "")
    model_dir = instance / _NAME
    model_dir.mkdir(mode=0o700, exist_ok=True)
    link = model_dir / container.folder
    link.unlink(missing_ok=True)
    link.symlink_to(files, target_is_directory=True)
    return model_dir, model_dir / (container.repository or "")
