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
mount -t tmpfs -o mode=1777 tmpfs /tmp
# What is written to /etc and /var stays in memory.
for folder in etc var; do
  mkdir -p "/srv/.$folder/upper" "/srv/.$folder/work"
  mount -t overlay overlay -o "lowerdir=/$folder,upperdir=/srv/.$folder/upper,workdir=/srv/.$folder/work" "/$folder"
done
# The packages appear as installed here, and nowhere else on the machine.
mount -t overlay overlay -o "lowerdir=$tools/usr:/usr" /usr
mkdir -p "$cache" /run/netns /run/lock
mount --bind /srv/.cache "$cache"
ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
: > /run/sandbox-ready
exec sleep infinity
