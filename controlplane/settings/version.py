"""The version of the installed product.

Decides nothing. Must not know anything else."""

from __future__ import annotations

from importlib.metadata import version

VERSION = version("amphitrite")
