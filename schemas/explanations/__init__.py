"""What the codes of errors mean, for people: each with its causes and what to do.

Decides the text of ``ml explain`` and of docs/troubleshooting.md. Must not know who raises or shows
an error. One module for each group of codes; ``lookup`` has them all.
"""
