#!/bin/bash
# slurmrestd as a plain user, with the configuration at /mnt/slurm-configs, where the image's /etc/slurm leads. It needs no
# key: it passes on the tokens that it gets.
set -eu
export SLURM_JWT=daemon
# A container has both for itself already, and the usual seccomp profile forbids to ask for them again.
export SLURMRESTD_SECURITY=${SLURMRESTD_SECURITY:-disable_unshare_sysv,disable_unshare_files}
# Half of an indented answer is blanks.
export SLURMRESTD_JSON=${SLURMRESTD_JSON:-compact}
arguments=(-a rest_auth/jwt -f /etc/slurm/slurm_rest.conf -t "${SLURMRESTD_THREAD_COUNT:-3}"
  --max-connections "${SLURMRESTD_MAX_CONNECTIONS:-10}")
# Without accounting there is nothing behind /slurmdb, and slurmrestd 24.11 would not start.
if ! grep -qisE '^[[:space:]]*AccountingStorageType[[:space:]]*=[[:space:]]*accounting_storage/slurmdbd' /etc/slurm/*; then
  arguments+=(-s slurmctld)
fi
# It refuses to run as root. Where the pod has chosen a user there is nothing to give up.
as=()
if [ "$(id -u)" = 0 ]; then as=(setpriv --reuid www-data --regid www-data --clear-groups); fi
exec "${as[@]}" slurmrestd "${arguments[@]}" "$@" 0.0.0.0:6820
