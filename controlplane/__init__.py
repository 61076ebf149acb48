"""The control plane: REST API, store and reconciler.

``docs/architecture.md`` shows the folders. It imports ``dataplane`` and ``schemas``; the data plane
never imports it.
"""
