"""Checks whether Triton would load a model repository. Needs no Triton.

Decides the public names. Must not know where files are stored or who calls it. Each module names
the part of Triton whose rules it repeats. Its folders:

- ``config``: the text and the fields of config.pbtxt
- ``files``: listings of files, and findings
- ``models``: directories, versions and the backend of a model
- ``onnx``: ONNX files
- ``rules``: the rules for each part of a configuration
"""

from amphitrite.schemas.repository.files.file_listing import ANY_SERVER, LOCAL_BACKENDS, Repository, Server
from amphitrite.schemas.repository.files.findings import Finding, errors
from amphitrite.schemas.repository.rules.repository_check import signatures, validate
from amphitrite.schemas.repository.rules.tensors import Signature, Tensor

__all__ = [
    "ANY_SERVER",
    "LOCAL_BACKENDS",
    "Finding",
    "Repository",
    "Server",
    "Signature",
    "Tensor",
    "errors",
    "signatures",
    "validate",
]
