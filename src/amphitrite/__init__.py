"""The import package ``amphitrite``: links to the four packages at the top of the repository.

It decides nothing. Every tool resolves ``amphitrite.cli`` from a plain checkout by it, as from
an installation.
"""
