"""One run of a command: how it is declared, its connection, its operations.

It knows HTTP. It knows no resource.
"""
