"""One run of a command: its declaration, its connection, its operations.

Decides how requests are sent and how verbs are declared. Must not know any resource.
"""
