"""Inputs of ``control``: routing tables and control planes of any size, without model servers."""
