"""The pure half of the control plane: values in, values out, ``now`` included. No IO, no clock, no client.

The rooms: ``desired`` (what users want), ``observed`` (what is there), ``capacity`` (whether it fits), ``rules``
(what is refused) and ``planning`` (what to do next).
"""
