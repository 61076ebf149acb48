"""The fetcher: brings a model version to the node before its server starts.

Decides when a model version is complete on the node. It has an image of its own, with this package
and Python and nothing else: it imports the standard library alone, and must not know the rest of
the product.
"""
