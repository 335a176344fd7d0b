#!/bin/bash
# slurmdbd, with the configuration at /mnt/slurm-configs, where the image's /etc/slurm leads.
set -eu
. /opt/bin/slurm/lib.sh
copy_jwt_key /var/spool/slurmdbd
wait_munge
exec slurmdbd -D "$@"
