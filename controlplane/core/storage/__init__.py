"""What takes space, and what of it is garbage.

Decides from facts and the time alone. Must not know files, databases or who deletes.
"""
