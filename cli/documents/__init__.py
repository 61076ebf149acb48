"""YAML files, standard input and ``--set`` as validated documents with the locations of their
fields.

Decides how files and options become documents. Must not send requests.
"""
