#!/bin/bash
# sshd for users, who see the jail.
set -eu
. /opt/bin/slurm/lib.sh
slipway-node wait-jail
use_jail_users
use_jail_config
/opt/bin/slurm/complement_jail.sh -j "$JAIL" -u /mnt/jail.upper
install -d -m 755 /run/sshd
exec /usr/sbin/sshd -D -e -f /mnt/ssh-configs/sshd_config "$@"
