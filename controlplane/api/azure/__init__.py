"""Routes at Azure Resource Manager's paths, and their replies.

Decides requests and replies: a route reads a request, calls ``services`` or the store, and renders
the result. It must not decide anything about resources.
"""
