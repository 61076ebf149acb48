"""Where instances run: one protocol, and a folder for each kind of runtime.

Decides the contract ``runtime.Runtime``. ``tests/controlplane/runtimes/test_runtimes.py`` checks it
for every implementation. It must not know plans, routes or the store.
"""
