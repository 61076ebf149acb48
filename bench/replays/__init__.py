"""Loads of an hour or so, replayed against rules for the number of instances.

Decides the loads, the rules of Knative and Kubernetes as their sources have them, and how a
deployment answers. Simulated: nothing here starts a process.
"""
