"""Triton on one machine: which one serves, how it is started and asked, and our backends.

It knows models and command lines. It knows no route and no proxy.
"""
