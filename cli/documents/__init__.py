"""From YAML, ``--set`` and standard input to judged documents that know their lines.

It knows files and text. It sends nothing.
"""
