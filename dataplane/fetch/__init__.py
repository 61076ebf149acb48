"""The fetcher: brings a model version to the node before its server starts.

An image of its own holds this package and Python, nothing else: it imports the standard library alone.
"""
