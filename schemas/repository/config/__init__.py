"""config.pbtxt: protobuf's text format as typed values with their positions.

Decides which text is a valid ModelConfig. It must not know the rules for models.
"""
