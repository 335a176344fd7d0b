#!/bin/bash
# What login and worker pods have beside Slurm: sshd, and supervisord that keeps slurmd and sshd running.
set -eu
. "$(dirname "$0")/install.sh"
install_packages session
# Host keys come from a Secret.
rm -f /etc/ssh/ssh_host_*
mkdir -p /etc/ssh/sshd_keys /mnt/ssh-configs
clean
