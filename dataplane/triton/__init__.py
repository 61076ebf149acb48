"""Triton on one machine: which one serves, how it is started, what it is asked, and our backends.

It knows models and processes' command lines. It knows no route and no proxy.
"""
