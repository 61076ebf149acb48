"""The REST API: HTTP only.

The folders: ``http`` (what all routes share), ``azure`` (Azure Resource Manager's paths),
``storage`` (Azure Blob Storage's), ``agents`` (the data plane's) and ``openapi`` (their
description). Decides requests and replies; ``services`` decides the rest. Must not
know databases, runtimes or plans.
"""
