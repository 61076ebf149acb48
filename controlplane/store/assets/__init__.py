"""Registered assets: models, environments and code, as containers with versions.

Decides what a version is and that its content never changes. It must not know where the bytes are
(``content``).
"""
