"""Envoy's messages: JSON values to protobuf and back, and values that many of them share.

It knows no route and no cluster.
"""
