"""The bytes of assets, named by their SHA-256: uploads, manifests, repositories and garbage
collection.

Decides how bytes are kept and found again. Must not know what an asset means.
"""
