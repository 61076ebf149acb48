"""Brings resources into a running Envoy, step by step, and knows which are in force.

Decides the order of steps. Must not know what the resources say, which ``translate``
decides.
"""
