#!/usr/bin/env bash
# Known vulnerabilities of what is installed: of each Python package of the lock, by pip-audit, and of the packages of the
# images, by trivy or grype if one of them is there.
#
#   deploy/audit.sh PYTHON [IMAGE...]
#
# PYTHON: of an environment that has pip-audit. It asks the services that pip-audit knows (PyPI's, then OSV's), so it needs
# the network. Ends with 1 if something is vulnerable, 2 if it could not be asked.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${1:?usage: deploy/audit.sh PYTHON [IMAGE...]}
shift
list=$(mktemp)
trap 'rm -f "$list" "$list.log"' EXIT
vulnerable=0 unasked=0

for set in install controlplane dataplane; do
  python3 deploy/lock.py select "$set" >"$list"
  echo "== Python packages of the set $set"
  for service in pypi osv; do
    code=0
    "$python" -m pip_audit --disable-pip --require-hashes --strict -r "$list" -s "$service" --progress-spinner off \
      2>"$list.log" || code=$?
    # With --strict a package that the service does not know fails, and is not taken for a good one. It ends with 1 then, as
    # it does where the service does not answer; of findings it prints the number to stderr.
    if [ "$code" = 0 ] || grep -q 'known vulnerabilit' "$list.log"; then break; fi
    echo "$service was not asked: $(tail -n 1 "$list.log")"
    code=2
  done
  case $code in 2) unasked=1 ;; *) tail -n 1 "$list.log" ;; esac
  [ "$code" != 1 ] || vulnerable=1
done

for image in "$@"; do
  echo "== packages of the image $image"
  if command -v trivy >/dev/null; then
    trivy image --quiet --exit-code 1 --severity HIGH,CRITICAL "$image" || vulnerable=1
  elif command -v grype >/dev/null; then
    grype --fail-on high "$image" || vulnerable=1
  else
    echo "not checked: neither trivy nor grype is installed"
    unasked=1
  fi
done
[ "$#" != 0 ] || echo "== packages of images: not checked, since none was named (make audit IMAGES='registry/name:tag ...')"

if [ "$vulnerable" = 1 ]; then
  echo "error: there are known vulnerabilities" >&2
  echo "hint: make update takes newer versions" >&2
  exit 1
elif [ "$unasked" = 1 ]; then
  echo "error: not everything could be checked" >&2
  echo "hint: it needs the network: pypi.org or api.osv.dev; for images, trivy or grype" >&2
  exit 2
fi
