"""The backends of Triton that this product includes, one folder each.

Decides nothing. Must not know each other."""
