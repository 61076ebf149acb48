"""Attached clusters: checked, connected, and given a runtime each.

It joins settings, store and ``runtimes.kubernetes``. It knows no route.
"""
