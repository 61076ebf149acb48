# What a team puts before its scripts for `az ml` (docs/az.md): everything goes to `ml`.
az() { if [ "$1" = ml ]; then shift; fi; command ml "$@"; }
