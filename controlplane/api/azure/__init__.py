"""Routes at Azure Resource Manager's paths, and the bodies that they answer with.

A route reads a request, calls ``services`` or the store, and renders the result.
"""
