#!/bin/bash
# Runs one Slurm daemon as a pod would: own root, network, pid, mount, uts and ipc namespaces, one address.
#   pod.sh NAME ADDRESS ROOTFS COMMAND...
# Runs inside a sandbox (sandbox.sh) that has the bridge br0. State of NAME stays in /srv/NAME until removed.
# Its last step replaces itself, so the caller's process id ends the whole pod.
set -eu
name=$1 address=$2 rootfs=$3; shift 3
pod=/srv/$name
mkdir -p "$pod/upper/etc" "$pod/work" "$pod/root"
{ echo "127.0.0.1 localhost"; cat /srv/hosts; echo "$address $name"; } > "$pod/upper/etc/hosts"
ip netns del "$name" 2>/dev/null || true
ip netns add "$name"
# A fixed MAC per address: no stale ARP entry when a pod comes back. A fresh host-side name:
# the kernel removes the old one some time after its namespace is gone.
mac=$(printf '02:00:%02x:%02x:%02x:%02x' ${address//./ })
link=v$(od -An -N6 -tx1 /dev/urandom | tr -d ' \n')
ip link add "$link" type veth peer name eth0 address "$mac" netns "$name"
ip link set "$link" master br0 up
ip -n "$name" addr add "$address/16" dev eth0
ip -n "$name" link set eth0 up
ip -n "$name" link set lo up
exec nsenter --net="/run/netns/$name" \
  unshare --mount --pid --uts --ipc --fork --kill-child=KILL --propagation private \
  bash -eu -c '
    name=$1 pod=$2 rootfs=$3; shift 3
    hostname "$name"
    root=$pod/root
    mount -t overlay overlay -o "lowerdir=$rootfs,upperdir=$pod/upper,workdir=$pod/work" "$root"
    mount -t proc proc "$root/proc"
    mount -t sysfs sysfs "$root/sys"
    mount -t tmpfs -o mode=755 tmpfs "$root/dev"
    mkdir "$root/dev/pts" "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
    mount -t tmpfs tmpfs "$root/dev/shm"
    for device in null zero full random urandom tty; do
      touch "$root/dev/$device"
      mount --bind "/dev/$device" "$root/dev/$device"
    done
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    mount -t tmpfs -o mode=755 tmpfs "$root/run"
    cd /
    exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root /usr/bin/tini -g -- "$@"
  ' pod "$name" "$pod" "$rootfs" "$@"
