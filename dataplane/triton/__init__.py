"""Triton on one machine: which one serves, how it is started and asked, and our backends.

Decides Triton's command line and environment. Must not know routes or proxies.
"""
