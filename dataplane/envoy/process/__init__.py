"""The Envoy process: its command line, its start, its hot restart, its admin interface, its end.

It knows no routing table beyond addresses.
"""
