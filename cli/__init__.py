"""The command line ``ml``.

Decides what users type and read. Must not reach the control plane other than over HTTP, and must
not import a package of ours other than ``schemas``. Its folders:

- ``verbs``: one function for each command
- ``resources``: changes and queries of endpoints, deployments and computes
- ``assets``: files of models, environments and code
- ``documents``: YAML documents
- ``server``: the server process on this machine
- ``session``: one run of a command
- ``terminal``: options and output
"""
