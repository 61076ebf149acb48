"""Triton's ``onnxruntime`` backend in Python, and in C++ below ``native``.

Decides how Triton's requests become runs of ONNX Runtime. It runs inside Triton's stub process and
must not know the rest of the product.
"""
