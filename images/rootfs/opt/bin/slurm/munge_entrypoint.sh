#!/bin/bash
# munged, with the cluster's key.
set -eu
# An emptyDir is everybody's, and munged refuses it.
chown munge:munge /run/munge
chmod 755 /run/munge
install -d -o munge -g munge -m 700 /etc/munge /var/lib/munge /var/log/munge
install -o munge -g munge -m 400 /mnt/munge-key/munge.key /etc/munge/munge.key
rm -f /run/munge/munge.socket.2*
exec setpriv --reuid munge --regid munge --clear-groups munged --foreground --num-threads="${MUNGE_NUM_THREADS:-10}"
