"""The bytes of assets, named by their SHA-256: uploads, manifests, repositories and garbage
collection.

It knows files. It must not know what an asset means.
"""
