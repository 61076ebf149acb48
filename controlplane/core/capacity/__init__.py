"""Decides whether instances fit on a cluster's nodes, and what a rollout does if they do not.

It knows resource quantities. It must not know Kubernetes objects.
"""
