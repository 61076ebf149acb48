#!/usr/bin/env bash
# Run the quick start of README.md, command by command, and show each one: `make demo`.
#
# The commands are read from README.md, between the two `demo` marks, so what is shown there is what runs here. The demo
# has a home of its own, which is removed at the end, and other ports when the usual ones are taken. It stops the server
# whatever happens.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"

home=$(mktemp -d "${TMPDIR:-/tmp}/amphitrite-demo.XXXXXX")
export ML_HOME=$home
unset ML_SERVER_URL ML_SUBSCRIPTION ML_RESOURCE_GROUP ML_WORKSPACE
started=no

finish() {
  code=$?
  trap - EXIT INT TERM
  cd "$root"
  if [ "$started" = yes ]; then
    .venv/bin/ml server stop >&2 || code=1
  fi
  if [ "$code" -ne 0 ]; then
    rm -rf build/demo-logs
    if mkdir -p build && cp -R "$home/logs" build/demo-logs 2>/dev/null; then
      echo "The server's logs are in build/demo-logs." >&2
    fi
    echo "error: the demo failed after $SECONDS s" >&2
  fi
  rm -rf "$home"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Options for `ml server start`: none where the usual ports are free, else any two ports that are.
ports() {
  python - <<'PYTHON'
import socket


def free(port: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
        return int(probe.getsockname()[1])


try:
    free(8443), free(9443)
except OSError:
    print(f" --port {free(0)} --scoring-port {free(0)}")
PYTHON
}

# The commands are read from descriptor 3, which they do not inherit: none can swallow the rest of the list.
while IFS= read -r -u 3 command; do
  case $command in
    "") continue ;;
    "ml server start"*) command+=$(ports) started=yes ;;
  esac
  printf '\n$ %s\n' "$command"
  eval "$command" 3<&- </dev/null
  case $command in
    "ml server stop"*) started=no ;;
  esac
done 3< <(sed -n '/<!-- demo: begin -->/,/<!-- demo: end -->/{/^<!--/d;/^```/d;p}' README.md)

printf '\nThe demo took %s s.\n' "$SECONDS"
