"""ONNX files, read without ONNX Runtime.

Decides whether ONNX Runtime can read a file. It knows nothing of Triton's configuration.
"""
