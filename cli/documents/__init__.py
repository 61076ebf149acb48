"""YAML files, standard input and ``--set`` as validated documents with the locations of their
fields.

It knows files and text. It must not send requests.
"""
