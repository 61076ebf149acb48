"""Endpoints, deployments, computes and operations as rows, and the protocol of the store.

Decides what a change does to a row. The rest of the control plane knows the protocol
``store.Store`` only. Must not know HTTP or plans.
"""
