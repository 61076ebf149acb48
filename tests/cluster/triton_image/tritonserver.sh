#!/bin/bash
# The Triton of the wheel is older than the image's tag says: options that it does not know yet are left out.
arguments=()
for argument in "$@"; do
    case $argument in
        --http-max-input-size=*) ;;
        *) arguments+=("$argument") ;;
    esac
done
exec /opt/tritonserver/bin/tritonserver-of-the-wheel "${arguments[@]}"
