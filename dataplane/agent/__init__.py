"""The agent: it follows the control plane, keeps one proxy in step with it, and reports.

Decides when a table is submitted and what is reported. It must not know which proxy it drives: it
knows the protocol in ``amphitrite.dataplane.proxy`` alone.
"""
