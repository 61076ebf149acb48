"""Triton's ``onnxruntime`` backend in Python, and in C++ below ``native``.

It runs inside Triton's stub process: it imports ONNX Runtime and nothing of the control plane.
"""
