"""The REST API: HTTP alone.

The rooms: ``http`` (what all routes share), ``azure`` (Azure Resource Manager's paths), ``storage`` (Azure Blob
Storage's), ``agents`` (the data plane's) and ``openapi`` (the document about them). Decisions are in ``services``.
"""
