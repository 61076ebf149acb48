"""The pure part of the control plane: values in, values out, with ``now`` as a parameter.

Decides everything that needs no IO. Must not know a clock, a database, a network or a client.

The folders: ``desired`` (what users want), ``observed`` (what runs), ``capacity`` (whether it
fits), ``rules`` (what is refused) and ``planning`` (what to do next).
"""
