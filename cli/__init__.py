"""The command line ``ml``.

It reaches the control plane over HTTP only, and imports no other package of ours but ``schemas``.
Its folders:

- ``verbs``: one function for each command
- ``resources``: changes and queries of endpoints, deployments and computes
- ``assets``: files of models, environments and code
- ``documents``: YAML documents
- ``server``: the server process on this machine
- ``session``: one run of a command
- ``terminal``: options and output
"""
