"""Changes and queries of endpoints, deployments and computes.

It knows the resource routes of the REST API. It must not print.
"""
