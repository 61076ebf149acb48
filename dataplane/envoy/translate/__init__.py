"""The second translator: a routing table becomes Envoy's resources, as JSON values.

Pure. It decides listeners, routes and clusters; it knows no process and no stream.
"""
