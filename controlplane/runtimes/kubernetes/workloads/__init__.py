"""From a workload to the Kubernetes objects that run it.

Pure: it renders objects and never sends them.
"""
