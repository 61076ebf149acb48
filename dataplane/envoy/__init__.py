"""The second translator: a routing table -> Envoy's resources, as JSON values.

Each module makes one kind of resource, by pure functions; ``translate`` puts them together. Must not know how the
resources reach Envoy, and never imports protobuf: the dictionaries are the JSON form of Envoy's v3 messages.
"""
