"""Endpoints, deployments, computes and operations as rows, and the store's protocol.

``store.Store`` is what the rest of the control plane knows of it.
"""
