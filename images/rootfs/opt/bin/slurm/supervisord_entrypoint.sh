#!/bin/bash
# A worker: supervisord with the programs of the pod's configuration, slurmd and sshd among them.
set -eu
. /opt/bin/slurm/lib.sh
slipway-node wait-jail
use_jail_users
use_jail_config
make_system_slice /sys/fs/cgroup
# Settings of the machine, where the pod may change them.
if [ -e /etc/sysctl.conf ]; then sysctl --quiet --load /etc/sysctl.conf || echo "sysctl.conf: not all of it could be set"; fi
ldconfig
/opt/bin/slurm/complement_jail.sh -j "$JAIL" -u /mnt/jail.upper -w
install -d -m 755 /run/sshd /run/slurm
wait_munge
exec slipway-node with-limits -- supervisord --nodaemon --configuration /etc/supervisor/conf.d/supervisord.conf
