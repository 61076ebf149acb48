"""The Envoy process: its command line, its start, its hot restart, its admin interface, its end.

Decides when an Envoy starts, follows another and ends. Must not know routing tables beyond
addresses.
"""
