"""Envoy's messages: from JSON values to protobuf, and values that many of them share.

Decides how JSON values become messages. Must not know routes or clusters.
"""
