"""The Kubernetes objects that run a workload.

Decides every field of them, with pure functions. It must not send them.
"""
