"""Backends of Triton that this product brings along, one folder each."""
