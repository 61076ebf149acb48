"""config.pbtxt: protobuf's text format, read into typed values that know their places.

Decides what is valid text of a ModelConfig. It knows no rule about what a model needs.
"""
