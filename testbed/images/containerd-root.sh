#!/bin/bash
# Makes a containerd root in which the images of an OCI layout are imported and unpacked.
#   containerd-root.sh LAYOUT OUT   runs under with-tools.sh
# The CRI plugin stays on: it writes the references by digest that image volumes need.
set -euo pipefail
layout=$1 out=$2
state=$(mktemp -d)
cat > "$state/config.toml" <<T
version = 2
root = "$out"
state = "$state/run"
[grpc]
  address = "$state/sock"
T
containerd -c "$state/config.toml" > "$state/log" 2>&1 &
daemon=$!
ready=
for _ in $(seq 200); do
  if timeout 2 ctr -a "$state/sock" version > /dev/null 2>&1; then ready=1; break; fi
  sleep 0.05
done
[ -n "$ready" ] || { cat "$state/log"; exit 1; }
tar -C "$layout" -cf - . | timeout 300 ctr -a "$state/sock" -n k8s.io images import -
kill "$daemon"
wait "$daemon" || true
rm -rf "$state"
