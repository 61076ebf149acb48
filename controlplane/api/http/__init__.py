"""What all routes share: bodies, errors, pages, middleware, paths, signed addresses.

It knows HTTP and no resource.
"""
