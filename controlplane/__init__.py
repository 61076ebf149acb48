"""The control plane: REST API, store and reconciler.

Decides nothing itself; ``docs/architecture.md`` shows the folders. It imports ``dataplane`` and
``schemas``. It must not know the command line, and the data plane never imports it.
"""
