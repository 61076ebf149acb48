"""Options and text: output formats, progress, errors, logs, configured defaults.

It must not know the REST API.
"""
