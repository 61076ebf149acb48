"""Instances as processes on this machine: each a real Triton on loopback ports.

It knows processes and files. It knows no plan and no route.
"""
