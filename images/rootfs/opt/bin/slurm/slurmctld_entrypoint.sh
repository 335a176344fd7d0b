#!/bin/bash
# slurmctld, with users and configuration of the jail.
set -eu
. /opt/bin/slurm/lib.sh
STATE=/var/spool/slurmctld
slipway-node wait-jail
use_jail_users
use_jail_config
copy_jwt_key "$STATE"
# Provisioners make volumes for everybody, and slurmctld complains.
chmod 755 "$STATE"
# slurmctld writes usage when it ends, and first after five minutes. Killed before that it would never start again: with
# this file it takes the missing one for a loss. Everything that is there is read all the same.
if [ ! -e "$STATE/assoc_usage" ] && [ ! -e "$STATE/assoc_usage.old" ]; then rm -f "$STATE/clustername"; fi
wait_munge
exec slipway-node run -- slurmctld "$@"
