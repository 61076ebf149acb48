"""The bytes of assets, named by their SHA-256: uploads, manifests, layouts, and what is removed.

It knows files. It knows no asset's meaning.
"""
