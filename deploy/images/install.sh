#!/bin/sh
# Inside a build: installs into the virtual environment /opt/amphitrite, whose interpreter is the base image's.
#   install.sh dependencies SET    every wheel of this set of lock.txt, checked by hash, from /wheels where there are any
#   install.sh product SOURCE      the product alone, below /product
# Bytecode is compiled without file times, so that the same input gives the same bytes.
set -eu
export PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
python=/opt/amphitrite/bin/python
pip="/build/tools/bin/pip --python"

compile() {
  "$python" -m compileall -q -j 1 --invalidation-mode unchecked-hash "$1"
}

case "$1" in
dependencies)
  if ls /wheels/*.whl >/dev/null 2>&1; then set -- "$@" --no-index --find-links /wheels; fi
  set=$2
  shift 2
  "$python" lock.py select build >build.txt
  "$python" lock.py select "$set" >set.txt
  $pip /build/tools/bin/python install -q --no-compile --require-hashes --no-deps --only-binary :all: "$@" -r build.txt
  $pip "$python" install -q --no-compile --require-hashes --no-deps --only-binary :all: "$@" -r set.txt
  rm -f /opt/amphitrite/lib/python3.*/site-packages/*.dist-info/direct_url.json
  compile /opt/amphitrite/lib
  ;;
product)
  /build/tools/bin/pip wheel -q --no-deps --no-index --no-build-isolation -w /build/wheel "$2"
  $pip "$python" install -q --no-compile --no-deps --no-index --prefix /product /build/wheel/*.whl
  rm -f /product/lib/python3.*/site-packages/*.dist-info/direct_url.json
  compile /product/lib
  ;;
esac
