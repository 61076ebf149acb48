"""The pure half of the control plane: values in, values out, ``now`` included. No IO, no clock, no client."""
