"""Brings resources into a running Envoy, step by step, and knows which are in force.

Decides the order of steps. The package ``translate`` decides what the resources say.
"""
