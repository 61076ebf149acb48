"""The verbs: one module for each group of commands, one function for each verb.

A verb declares its options, calls the other folders and returns the data to print. It decides
nothing else.
"""
