#!/usr/bin/env bash
# Builds the product's images with buildah or docker, whichever is there (BUILDER names one, with options).
#   deploy/images/build.sh [--registry docker.io/amphitrite] [--tag VERSION] [--base IMAGE] [--wheels DIRECTORY] [--push]
#     [NAME ...]
# NAME: controlplane, dataplane, fetcher; all three without one. --base may name a digest. --wheels: a directory with every
# wheel of the image's set in deploy/lock.txt (README.md says how to get one), and then the build needs no network.
set -euo pipefail
cd "$(dirname "$0")/../.."
registry=docker.io/amphitrite base=docker.io/library/python:3.11-slim-bookworm wheels='' push='' names=()
tag=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
version=$tag
while (($#)); do
  case $1 in
  --registry | --tag | --base | --wheels) declare "${1#--}=${2:?$1 needs a value}"; shift ;;
  --push) push=yes ;;
  -*) sed -n '2,/^[^#]/s/^# //p' "$0" >&2; exit 2 ;;
  *) names+=("$1") ;;
  esac
  shift
done
builder=${BUILDER:-$(command -v buildah || command -v docker)} || { echo "error: neither buildah nor docker found" >&2; exit 1; }
# Every file of every layer bears the time of the commit, so that the same commit gives the same layers.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}
export SOURCE_DATE_EPOCH
options=(--build-arg "BASE=$base" --build-arg "VERSION=$version"
  --build-arg "REVISION=$(git rev-parse HEAD 2>/dev/null || echo unknown)" --build-arg "SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH")
[[ -z $wheels ]] || options+=(--build-context "wheels=$wheels")
for name in "${names[@]:-controlplane dataplane fetcher}"; do
  for image in $name; do
    reference=$registry/$image:$tag
    if [[ $builder == *buildah* ]]; then
      $builder build --quiet --layers --pull=false --timestamp "$SOURCE_DATE_EPOCH" "${options[@]}" \
        -t "$reference" -f "deploy/images/$image.Dockerfile" . >/dev/null
      [[ -z $push ]] || $builder push "$reference"
    else
      $builder buildx build --quiet "${options[@]}" -f "deploy/images/$image.Dockerfile" \
        --output "type=image,name=$reference,rewrite-timestamp=true${push:+,push=true}" . >/dev/null
    fi
    echo "$reference"
  done
done
