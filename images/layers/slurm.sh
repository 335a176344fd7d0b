#!/bin/bash
# Every daemon and command of Slurm.
set -eu
. "$(dirname "$0")/install.sh"
install_packages slurm
# Made by package scripts, so the same in every cluster; or an error line at each start.
rm -f /etc/munge/munge.key
rm -rf /etc/slurm
# Where the pods of slurmdbd and slurmrestd have their configuration. Others link it to the jail's.
ln -s /mnt/slurm-configs /etc/slurm
# PluginDir of both Go operators' slurm.conf, and where slurmd and slurmctld keep their state.
plugins=$(dirname "$(dpkg -L slurm-wlm-basic-plugins | grep '/auth_munge\.so$')")
ln -sfn "$plugins" /usr/lib/slurm
mkdir -p /mnt/jail /mnt/jail.upper /mnt/munge-key /mnt/slurm-configs /mnt/rest-jwt-key \
  /var/spool/slurmctld /var/spool/slurmd /var/spool/slurmdbd
# What is bound over the jail's own: commands, libraries and plugins of exactly this release.
mkdir -p /usr/share/slipway
slurmctld -V > /usr/share/slipway/release
{
  echo "$plugins"
  dpkg -L slurm-client $(dpkg-query -W -f '${Package}\n' 'libslurm*' libmunge2 | sort) |
    grep -E '^/usr/(bin/|lib/.*/lib[^/]*\.so)' | while read -r file; do [ ! -f "$file" ] || echo "$file"; done
} | sort -u > /usr/share/slipway/jail-files
clean
