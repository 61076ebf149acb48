"""What becomes of the answers that Envoy shows: the request is sent again, the answers compared.

Decides how much of that is done: samples beyond the limits are dropped, and counted. Nothing here
is on the path of a request. Must not know the control plane, nor what is done about a difference.
"""
