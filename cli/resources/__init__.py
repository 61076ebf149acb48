"""What verbs change and read of endpoints, deployments and computes.

It knows the resource routes of the REST API. It prints nothing.
"""
