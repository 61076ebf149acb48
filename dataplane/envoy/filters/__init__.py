"""What Envoy does with each request and response: one module for each concern.

Pure functions that return Envoy's configuration as JSON values. They know no table as a whole.
"""
