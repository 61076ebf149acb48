"""Attached clusters: access check, connection, and one runtime for each.

Decides which clusters instances can run on. Must not know HTTP or plans.
"""
