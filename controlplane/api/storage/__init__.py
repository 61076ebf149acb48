"""The part of Azure Blob Storage's protocol by which clients upload and download.

It knows blobs and containers. It knows no model.
"""
