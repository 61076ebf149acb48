"""What crosses a process boundary: documents, their wire form, names, and the one error.

The rooms: ``documents`` (JSON Schemas, validation, normalization), ``wire`` (Azure Resource Manager's form) and
``repository`` (whether Triton would load a model repository). It imports no other package of ours. It stays cheap to
import: every process of the product begins with ``amphitrite.schemas.errors``.
"""

from __future__ import annotations

import sys

# httpx imports its own command line wherever click and rich are installed: two thirds of what importing httpx costs
# every command, agent and server. Nothing here uses that; httpx goes on without it, as where those two are missing
# (decision 0007).
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
