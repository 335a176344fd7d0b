#!/bin/bash
# slurmd of a worker. With -b it says that it has just booted: without, a new pod reports the machine's boot, and a reboot
# that Slurm asked for never ends.
set -eu
arguments=(-D -b -N "$(hostname)")
if [ -n "${INSTANCE_ID:-}" ]; then arguments+=(--instance-id "$INSTANCE_ID"); fi
# One word, whatever is in it.
if [ -n "${SLURM_NODE_EXTRA:-}" ]; then arguments+=(--extra "$SLURM_NODE_EXTRA"); fi

# A worker that slurm.conf does not name makes itself known. (Environment of Soperator 1.x.)
if [ -n "${SLURM_REAL_MEMORY:-}" ] && [ "${SOPERATOR_NODE_SETS_ON:-}" != true ]; then
  name=$(hostname)
  conf="NodeHostname=$name NodeAddr=$name.$K8S_SERVICE_NAME.$K8S_POD_NAMESPACE.svc RealMemory=$SLURM_REAL_MEMORY"
  features=
  for variable in "${!SLURM_FEATURE_@}"; do
    if scontrol show hostnames "${!variable}" | grep -qxF "$name"; then features+=,${variable#SLURM_FEATURE_}; fi
  done
  conf+=${features:+ Feature=${features#,}}
  arguments+=(-Z --conf "$conf")
fi
exec slurmd "${arguments[@]}"
