"""Everything that knows Envoy, behind ``amphitrite.dataplane.proxy``.

Decides how a routing table is served by Envoy. Must not know the control plane.

The folders: ``protobuf`` (messages), ``filters`` and ``translate`` (pure: a routing table becomes
Envoy's resources), ``process`` (the Envoy process) and ``xds`` (carrying resources into it).
"""
