"""The decision: from what is wanted and what is there to what happens next.

``plan`` is the entry. A plan is a value; carrying it out is the reconciler's.
"""
