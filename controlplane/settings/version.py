"""Which version of the product this is, as installed."""

from __future__ import annotations

from importlib.metadata import version

VERSION = version("amphitrite")
