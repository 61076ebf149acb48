"""The verbs: one module for each group of commands, one function for each verb.

A verb declares its options and calls the other rooms. It decides nothing else.
"""
