"""Where instances run: one protocol, and a folder for each kind of place.

``runtime.Runtime`` is the contract; ``tests/controlplane/runtimes`` holds every implementation to it.
"""
