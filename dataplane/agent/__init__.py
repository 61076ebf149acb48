"""The agent: it follows the control plane, keeps one proxy in step with it, and reports.

It knows the proxy by the protocol in ``amphitrite.dataplane.proxy`` alone, so it runs beside any.
"""
