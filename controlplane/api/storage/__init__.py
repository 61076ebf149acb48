"""The part of Azure Blob Storage's protocol that clients use to upload and download.

Decides which calls are answered. It knows blobs and containers and must not know models.
"""
