#!/bin/bash
# What a worker waits for before its slurmd starts: wait-controller, wait-topology.
set -eu
. /opt/bin/slurm/lib.sh
slipway-node wait-jail
use_jail_config
wait_munge
exec slipway-node worker-init "$@"
