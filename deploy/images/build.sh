#!/usr/bin/env bash
# Builds the product's images with buildah or docker, whichever is there (BUILDER names one, with options).
#   deploy/images/build.sh [--registry docker.io/amphitrite] [--tag VERSION] [--base IMAGE] [--wheels DIRECTORY] [--push]
#     [--digests FILE] [NAME ...]
# NAME: controlplane, dataplane, fetcher; all three without one. --base may name a digest. --wheels: a directory with every
# wheel of the image's set in deploy/lock.txt (README.md says how to get one), and then the build needs no network.
# --digests, with --push: writes a file of values for the chart with the digest of each image that was pushed, and of the
# chart's other images where skopeo or docker reach their registry.
set -euo pipefail
cd "$(dirname "$0")/../.."
registry=docker.io/amphitrite base=docker.io/library/python:3.11-slim-bookworm wheels='' push='' digests='' names=()
values=deploy/helm/amphitrite/values.yaml
tag=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
version=$tag
while (($#)); do
  case $1 in
  --registry | --tag | --base | --wheels | --digests) declare "${1#--}=${2:?$1 needs a value}"; shift ;;
  --push) push=yes ;;
  -*) sed -n '2,/^[^#]/s/^# //p' "$0" >&2; exit 2 ;;
  *) names+=("$1") ;;
  esac
  shift
done
[[ -z $digests || -n $push ]] || { echo "error: --digests needs --push: a registry decides the digest" >&2; exit 2; }
builder=${BUILDER:-$(command -v buildah || command -v docker)} || { echo "error: neither buildah nor docker found" >&2; exit 1; }
# Every file of every layer bears the time of the commit, so that the same commit gives the same layers.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}
export SOURCE_DATE_EPOCH
options=(--build-arg "BASE=$base" --build-arg "VERSION=$version"
  --build-arg "REVISION=$(git rev-parse HEAD 2>/dev/null || echo unknown)" --build-arg "SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH")
[[ -z $wheels ]] || options+=(--build-context "wheels=$wheels")
remote_digest() { # of the image $1; nothing where it is not reached
  if command -v skopeo >/dev/null; then
    skopeo inspect --no-tags --format '{{.Digest}}' "docker://$1" 2>/dev/null
  elif command -v docker >/dev/null; then
    docker buildx imagetools inspect "$1" --format '{{.Manifest.Digest}}' 2>/dev/null
  fi || true
}
report=$(mktemp)
trap 'rm -f "$report"' EXIT
[[ -z $digests ]] || printf '# Written by deploy/images/build.sh: helm upgrade ... -f my-values.yaml -f this file.\nimages:\n' >"$digests"
for name in "${names[@]:-controlplane dataplane fetcher}"; do
  for image in $name; do
    reference=$registry/$image:$tag
    if [[ $builder == *buildah* ]]; then
      $builder build --quiet --layers --pull=false --timestamp "$SOURCE_DATE_EPOCH" "${options[@]}" \
        -t "$reference" -f "deploy/images/$image.Dockerfile" . >/dev/null
      [[ -z $push ]] || $builder push --quiet --digestfile "$report" "$reference"
    else
      $builder buildx build --quiet --metadata-file "$report" "${options[@]}" -f "deploy/images/$image.Dockerfile" \
        --output "type=image,name=$reference,rewrite-timestamp=true${push:+,push=true}" . >/dev/null
    fi
    digest=$(grep -o 'sha256:[0-9a-f]*' <(grep -o '^sha256:.*\|"containerimage.digest": *"[^"]*"' "$report") || true)
    echo "$reference${push:+@$digest}"
    [[ -z $digests ]] || printf '  %s: {registry: "%s", repository: "%s", tag: "%s", digest: "%s"}\n' \
      "$image" "${registry%%/*}" "${registry#*/}/$image" "$tag" "$digest" >>"$digests"
  done
done
[[ -n $digests ]] || exit 0
for image in triton postgresql; do
  reference=$(sed -n "s|^  $image: {registry: \([^,]*\), repository: \([^,]*\), tag: \([^,]*\),.*|\1/\2:\3|p" "$values")
  digest=$(remote_digest "$reference")
  if [[ -n $digest ]]; then
    printf '  %s: {digest: "%s"}\n' "$image" "$digest"
  else
    printf "  # %s is not pinned. Where its registry is reached: skopeo inspect --format '{{.Digest}}' docker://%s\n" \
      "$image" "$reference"
  fi
done >>"$digests"
