"""What all routes share: bodies, errors, pages, middleware, paths, signed URLs.

Decides the rules of HTTP. It must not know resources.
"""
