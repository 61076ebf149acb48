"""What pyproject.toml cannot say: links of ``src/amphitrite`` stay links in the source
distribution.

setuptools copies what a link leads to. The distribution would have each package twice, and its
tests would judge one copy and import the other.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.sdist import sdist


class Sdist(sdist):
    """Writes a link where the checkout has one, and no bytecode."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, [file for file in files if "__pycache__" not in file])
        for link in Path("src/amphitrite").iterdir():
            if link.is_symlink():
                shutil.rmtree(Path(base_dir) / link)
                (Path(base_dir) / link).symlink_to(os.readlink(link))


setup(cmdclass={"sdist": Sdist})
