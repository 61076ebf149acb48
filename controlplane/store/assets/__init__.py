"""Registered assets: models, environments and code, as containers and numbered versions.

A version never changes. Its bytes are in ``content``.
"""
