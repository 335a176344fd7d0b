#!/bin/bash
# Makes a root file system with every Slurm daemon, MariaDB and sshd from Debian packages.
#   rootfs.sh SUITE OUT MIRROR   runs with mmdebstrap in PATH, as root
set -eu
suite=$1 out=$2 mirror=$3
packages=slurmctld,slurmd,slurmdbd,slurmrestd,sackd,slurm-client,slurm-wlm-jwt-plugin,slurm-wlm-mysql-plugin
packages+=,munge,mariadb-server,openssh-server,tini,procps,iproute2,mount,passwd,curl,jq

# Testing and unstable carry a Valid-Until that a machine with a late clock has passed.
# Keys made by package scripts would be the same in every cluster, a resolv.conf would cost
# slurmctld a resolver timeout for each unknown name, and the packaged plugstack.conf logs an error at each start.
mmdebstrap --mode=root --variant=apt \
  --aptopt='Acquire::Check-Valid-Until "false"' \
  --aptopt='APT::Install-Recommends "false"' \
  --aptopt='Acquire::Languages "none"' \
  --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-include=/usr/share/doc/*/copyright' \
  --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  --dpkgopt='path-exclude=/usr/share/info/*' \
  --include="$packages" \
  --customize-hook='chroot "$1" useradd -m -u 2001 -s /bin/bash alice' \
  --customize-hook='chroot "$1" useradd -m -u 2002 -s /bin/bash bob' \
  --customize-hook='rm -f "$1"/etc/munge/munge.key "$1"/etc/ssh/ssh_host_* "$1"/etc/hostname' \
  --customize-hook=': > "$1"/etc/resolv.conf; : > "$1"/etc/slurm/plugstack.conf' \
  --customize-hook='sed -i "s/^hosts:.*/hosts: files dns/" "$1"/etc/nsswitch.conf' \
  --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/archives/*.deb' \
  "$suite" "$out" "$mirror"
