#!/bin/bash
# RebootProgram of slurm.conf: reboots the machine below a worker with GPUs, through the driver container's view of it.
set -eu
if [ "${NODESET_GPU_ENABLED:-${SLURM_CLUSTER_WITH_GPU:-false}}" != true ] && [ "${SLURM_CLUSTER_TYPE:-}" != gpu ]; then
  echo "reboot.sh: only workers with GPUs reboot their machine; nothing was done" >&2
  exit 1
fi
driver=/run/nvidia/driver
if [ ! -x "$driver/usr/bin/nsenter" ]; then
  echo "reboot.sh: $driver has no nsenter: is the NVIDIA driver container running on this node?" >&2
  exit 1
fi
exec chroot "$driver" nsenter --target 1 --mount --uts --ipc --net --pid -- /usr/sbin/reboot
