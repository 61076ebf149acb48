"""The backends of Triton that this product includes, one folder each."""
