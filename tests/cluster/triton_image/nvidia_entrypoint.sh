#!/bin/bash
# The real image's entry point prints a banner and then does this.
exec "$@"
