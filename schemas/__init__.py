"""Data that cross process boundaries: documents, their wire form, names, and the error.

Decides the form of these data. Must not import any other package of ours, and must be cheap to
import: every process of the product imports ``amphitrite.schemas.errors`` first. Its folders:

- ``documents``: JSON Schemas, validation, normalization
- ``wire``: the form of Azure Resource Manager
- ``repository``: whether Triton would load a model repository
- ``explanations``: what the codes of errors mean
"""

from __future__ import annotations

import sys

# httpx imports its own command line wherever click and rich are installed: two thirds of what
# importing httpx costs every command, agent and server. Nothing here uses that; httpx goes on
# without it, as where those two are missing (decision 0007).
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
