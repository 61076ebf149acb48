"""Envoy's messages: from JSON values to protobuf, and values that many of them share.

It knows no route and no cluster.
"""
