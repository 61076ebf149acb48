"""The proxy as the agent drives it: a protocol and the values that cross it.

Decides what any proxy must be able to do. It must not know any product: an implementation
has a folder of its own.
"""
