#!/bin/bash
# Holds a mount and a network namespace for a cluster. Everything below lives in them,
# so that the end of the last process in them also ends every mount and link.
#   sandbox.sh TOOLS CACHE   TOOLS: unpacked Debian packages. CACHE: stays visible, wherever it is.
set -eu
tools=$1 cache=$2
mount -t tmpfs -o mode=755 tmpfs /srv
mkdir /srv/.cache
mount --bind "$cache" /srv/.cache
tools=/srv/.cache${tools#"$cache"}
mount -t tmpfs -o mode=755 tmpfs /run
# What is written here stays in memory.
for folder in etc tmp var; do
  mkdir -p "/srv/.$folder/upper" "/srv/.$folder/work"
  mount -t overlay overlay -o "lowerdir=/$folder,upperdir=/srv/.$folder/upper,workdir=/srv/.$folder/work" "/$folder"
done
# The packages appear as installed here, and nowhere else on the machine.
mount -t overlay overlay -o "lowerdir=$tools/usr:/usr" /usr
mkdir -p "$cache" /run/netns /run/lock
mount --bind /srv/.cache "$cache"
# Where the controller-manager puts volumes. A file system of its own, since an overlay has no mapping of owners.
mkdir -p /tmp/hostpath_pv
mount -t tmpfs -o mode=755 tmpfs /tmp/hostpath_pv
ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
: > /run/sandbox-ready
exec sleep infinity
