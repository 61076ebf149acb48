"""The fetcher: brings a model version to the node before its server starts.

It has an image of its own, with this package and Python and nothing else: it imports the standard
library alone.
"""
