"""The second translator: a routing table becomes Envoy's resources, as JSON values.

Decides listeners, routes and clusters. Pure: it must not know a process or a stream.
"""
