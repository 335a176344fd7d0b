#!/bin/bash
# The root file system that users see. Anything may be added to it, by an image of one's own or by users at run time.
set -eu
. "$(dirname "$0")/install.sh"
install_packages jail
rm -rf /etc/munge /etc/slurm
# Where pods put their own things at start.
mkdir -p /etc/slurm /mnt/memory /var/spool/slurmd /opt/soperator-outputs /var/hostlog
ln -sfn "$(dirname "$(dpkg -L slurm-wlm-basic-plugins | grep '/auth_munge\.so$')")" /usr/lib/slurm
clean
