"""The import package ``amphitrite``: links to the four packages at the top of the repository.

It decides nothing. It exists so that every tool resolves ``amphitrite.cli`` from a plain checkout, as an installation does.
"""
