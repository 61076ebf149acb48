#!/usr/bin/env bash
# Writes requirements/*.txt anew: every package that an image carries, by version and hash, for Python 3.11 on Debian 12.
# uv resolves (from PATH, or installed below build/); read the diff before committing it.
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! uv=$(command -v uv); then
  uv=build/uv/bin/uv
  [[ -x $uv ]] || { python3 -m venv build/uv && build/uv/bin/pip install -q uv; }
fi
lock() { # NAME [uv's arguments] with the input as the last one
  local name=$1
  shift
  "$uv" pip compile --quiet --upgrade --generate-hashes --no-annotate --only-binary :all: --python-version 3.11 \
    --python-platform x86_64-manylinux_2_36 --custom-compile-command deploy/images/lock.sh \
    --output-file "deploy/images/requirements/$name.txt" "$@"
}
lock controlplane --extra cluster pyproject.toml
lock dataplane --extra proxy pyproject.toml
lock build - <<<'setuptools>=77'
