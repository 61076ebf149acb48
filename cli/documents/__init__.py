"""YAML files, standard input and ``--set`` as validated documents with locations.

Decides how files and options become documents. Must not send requests.
"""
