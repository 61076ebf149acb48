"""Options in, text out: output formats, progress, errors, logs, defaults.

It knows no REST API.
"""
