"""One run of a command: its declaration, its connection, its operations.

It knows HTTP. It must not know any resource.
"""
