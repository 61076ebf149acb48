"""Options and text: output formats, progress, errors, logs, configured defaults.

Decides what a terminal shows. Must not know the REST API.
"""
