"""Carries resources into a running Envoy, step by step, and knows which are in force.

It decides the order of steps. What the resources say is decided in ``translate``.
"""
