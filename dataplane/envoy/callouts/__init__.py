"""What Envoy asks the agent about single requests, by gRPC (callouts).

Decides which requests wait, and for how long. Only routes that ask for it send their requests here.
Must not know routing tables, models or the control plane. No body waits with them.
"""
