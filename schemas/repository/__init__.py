"""Whether Triton would load a model repository, found out without Triton.

Decides what others import. The rules: ``layout`` (directories, versions), ``text_format`` (config.pbtxt),
``backends`` (what loads a model), ``tensors``, ``batching``, ``instances``, ``warmup``, ``ensembles``,
``python_model``, ``onnx_rules``, ``completion``. Each names the part of Triton whose rule it repeats. Must not know
where files lie or who asks."""

from amphitrite.schemas.repository.files.file_listing import ANY_SERVER, LOCAL_BACKENDS, Repository, Server
from amphitrite.schemas.repository.files.findings import Finding, errors
from amphitrite.schemas.repository.rules.repository_check import validate

__all__ = ["ANY_SERVER", "LOCAL_BACKENDS", "Finding", "Repository", "Server", "errors", "validate"]
