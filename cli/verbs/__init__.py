"""The verbs: one module for each group of commands, one function for each verb.

A verb decides its options and the data to print. It must not know how the other folders work.
"""
