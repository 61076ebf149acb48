"""Instances that see their own files and processes only, by the kernel's namespaces.

Decides what such an instance sees, how its first process is started, and whether this machine can
do that. Must not know workloads, records or probes.
"""
