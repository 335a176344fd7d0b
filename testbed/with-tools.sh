#!/bin/bash
# Runs a command with the unpacked Debian packages as if they were installed.
#   unshare --mount --propagation private with-tools.sh TOOLS COMMAND...
set -eu
tools=$1; shift
mount -t overlay overlay -o "lowerdir=$tools/usr:/usr" /usr
exec "$@"
