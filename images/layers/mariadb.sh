#!/bin/bash
# The accounting database.
set -eu
. "$(dirname "$0")/install.sh"
install_packages mariadb
install -d -o mysql -g mysql /var/lib/mysql /run/mysqld
clean
