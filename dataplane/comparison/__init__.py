"""Whether two answers of a model server say the same.

Decides how an answer is read (the KServe V2 protocol, as JSON or with Triton's binary tensor data),
what a difference is and how much work one comparison may be. Pure. Must not know where answers come
from, nor who counts the outcome.
"""
