"""Decides what happens next, from what users want and what runs.

``plan`` is the entry point. A plan is a value; the reconciler carries it out. Must not know a store
or a runtime.
"""
