"""The pure part of the control plane: values in, values out, with ``now`` as a parameter. It has no
IO, no clock and no client.

The folders: ``desired`` (what users want), ``observed`` (what runs), ``capacity`` (whether it
fits), ``rules`` (what is refused) and ``planning`` (what to do next).
"""
