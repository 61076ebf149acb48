"""Endpoints, deployments, computes and operations as rows, and the protocol of the store.

The rest of the control plane knows the protocol ``store.Store`` only.
"""
