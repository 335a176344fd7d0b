#!/bin/bash
# One Kubernetes node, in its network namespace and mount, pid, uts and ipc namespaces of its own.
#   node.sh NUMBER CGROUP IMAGES KUBELET PROXY STATE
# CGROUP: path of the node's cgroup. IMAGES: prepared containerd root. KUBELET, PROXY: the programs.
# STATE: the cluster's folder, on the same file system as IMAGES.
# /srv/nodeN holds the files that the caller wrote: containerd.toml, kubelet.yaml, proxy.yaml, cni/.
# The caller's process becomes the one whose end takes the whole node away.
set -eu
number=$1 cgroup=$2 images=$3 kubelet=$4 proxy=$5 state=$6
export node=node$number home=/srv/node$number number images kubelet proxy logs=$state/logs store=$state/layers/node$number

if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  # Unified hierarchy: controllers have to be handed down level by level.
  path=/sys/fs/cgroup
  for part in ${cgroup//\// }; do
    sed 's/[^ ]*/+&/g' "$path/cgroup.controllers" > "$path/cgroup.subtree_control"
    path=$path/$part
    mkdir -p "$path"
  done
else
  for hierarchy in cpu cpuacct cpuset memory pids blkio devices freezer systemd unified; do
    if [ -d "/sys/fs/cgroup/$hierarchy" ]; then mkdir -p "/sys/fs/cgroup/$hierarchy$cgroup"; fi
  done
  path=/sys/fs/cgroup/cpuset
  for part in ${cgroup//\// }; do
    cat "$path/cpuset.cpus" > "$path/$part/cpuset.cpus"
    cat "$path/cpuset.mems" > "$path/$part/cpuset.mems"
    path=$path/$part
  done
fi

exec nsenter --net="/run/netns/$node" \
  unshare --mount --pid --uts --ipc --fork --kill-child=KILL --mount-proc --propagation private bash -eu -c '
  hostname "$node"
  # A sysfs of this network namespace, with the cgroups of the machine.
  mkdir -p "$home/cgroup"
  mount --rbind /sys/fs/cgroup "$home/cgroup"
  mount -t sysfs sysfs /sys
  mount --rbind "$home/cgroup" /sys/fs/cgroup
  umount -l "$home/cgroup"
  mount -t tmpfs -o mode=755 tmpfs /run
  mkdir -p /run/containerd /run/netns /run/lock /run/proc
  # A pod with a user namespace may mount /proc only where one is fully visible, and the one at /proc is not.
  mount -t proc proc /run/proc
  # The kubelet insists on sysctls of the whole machine; it finds them as it wants them and changes nothing.
  mkdir -p "$home/sysctl"
  for pair in vm/overcommit_memory=1 kernel/panic=10 kernel/panic_on_oops=1; do
    file=$home/sysctl/$(basename "${pair%%=*}")
    echo "${pair##*=}" > "$file"
    mount --bind "$file" "/proc/sys/${pair%%=*}"
  done
  mkdir -p /var/lib/cni /var/log
  mount -t tmpfs tmpfs /var/lib/cni
  mount -t tmpfs tmpfs /var/log
  # A range of ids of its own: kubelets on one machine do not know of each other.
  { cat /etc/passwd; echo kubelet:x:64999:64999::/nonexistent:/usr/sbin/nologin; } > "$home/passwd"
  echo "kubelet:$((number * 1024 * 65536)):$((1024 * 65536))" > "$home/subid"
  touch /etc/subuid /etc/subgid
  mount --bind "$home/passwd" /etc/passwd
  mount --bind "$home/subid" /etc/subuid
  mount --bind "$home/subid" /etc/subgid

  # The prepared images, without a copy: databases are small, blobs are an overlay, and the unpacked layers are
  # hard links. Links and not mounts: for a user namespace containerd clones the one mount they all lie in.
  snapshots=io.containerd.snapshotter.v1.overlayfs content=io.containerd.content.v1.content
  root=$home/containerd
  mkdir -p "$root/io.containerd.metadata.v1.bolt" "$root/$snapshots" "$root/$content" "$home/content/upper" "$home/content/work" "$store"
  cp "$images/io.containerd.metadata.v1.bolt/meta.db" "$root/io.containerd.metadata.v1.bolt/"
  cp "$images/$snapshots/metadata.db" "$store/"
  cp -al "$images/$snapshots/snapshots" "$store/"
  mount --bind "$store" "$root/$snapshots"
  mount -t overlay overlay -o "lowerdir=$images/$content,upperdir=$home/content/upper,workdir=$home/content/work" "$root/$content"
  mount --make-rshared /

  containerd -c "$home/containerd.toml" > "$logs/$node-containerd.log" 2>&1 &
  # A kubelet that finds no API server asks again after pauses that double, and may sleep through its coming.
  # Waiting at a pipe that never has anything costs no process, as sleep would.
  exec 9<> <(:)
  until [ -S /run/containerd/containerd.sock ] && [ -e /srv/api-server-serves ]; do read -r -t 0.02 -u 9 || true; done
  "$kubelet" --config="$home/kubelet.yaml" --kubeconfig="$home/kubelet.kubeconfig" \
    --hostname-override="$node" --node-ip="10.88.1.$number" --root-dir="$home/kubelet" --cert-dir="$home/kubelet-pki" \
    > "$logs/$node-kubelet.log" 2>&1 &
  agent=$!
  "$proxy" --config="$home/proxy.yaml" > "$logs/$node-kube-proxy.log" 2>&1 &
  # The shell stays: as the first process of the namespace it reaps what containers leave.
  wait $agent
'
