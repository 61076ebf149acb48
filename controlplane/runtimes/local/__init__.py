"""Instances as processes on this machine: each is a real Triton on loopback ports.

Decides how they start, are probed and end. It must not know plans or routes.
"""
