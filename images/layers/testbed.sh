#!/bin/bash
# For tests with Slurm as plain processes, in no image: users, and a database that is there at once.
set -eu
. "$(dirname "$0")/install.sh"
useradd --create-home --uid 2001 --shell /bin/bash alice
useradd --create-home --uid 2002 --shell /bin/bash bob
rm -f /etc/slurm
mkdir /etc/slurm
: > /etc/slurm/plugstack.conf
mariadb-install-db --no-defaults --user=mysql --datadir=/var/lib/mysql --auth-root-authentication-method=normal --skip-test-db --force
clean
