"""Everything that knows Envoy, behind ``amphitrite.dataplane.proxy``.

The rooms: ``protobuf`` (messages), ``filters`` and ``translate`` (pure: a routing table becomes
Envoy's resources), ``process`` (the Envoy process) and ``xds`` (carrying resources into it).
"""
