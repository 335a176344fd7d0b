#!/bin/bash
# The root of every image: a Debian with the users that Slurm pods need.
set -eu
. "$(dirname "$0")/install.sh"
install_packages base
# The same numbers in every image and in the jail: pods read /etc/passwd of the jail, and packages would take
# whatever number is free.
for user in slurm:64030 munge:64031 sshd:64032 mysql:64033; do
  groupadd --system --gid "${user#*:}" "${user%:*}"
  useradd --system --uid "${user#*:}" --gid "${user#*:}" --home-dir /nonexistent --shell /usr/sbin/nologin "${user%:*}"
done
# Names come from Kubernetes. A resolv.conf of the build machine would cost a timeout for each unknown name.
sed -i 's/^hosts:.*/hosts: files dns/' /etc/nsswitch.conf
rm -f /etc/hostname
clean
