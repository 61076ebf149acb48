"""The version of the installed product. Must not know anything else."""

from __future__ import annotations

from importlib.metadata import version

VERSION = version("amphitrite")
