"""ONNX files, read without ONNX Runtime.

Decides whether ONNX Runtime can load a file. It must not know Triton's configuration.
"""
