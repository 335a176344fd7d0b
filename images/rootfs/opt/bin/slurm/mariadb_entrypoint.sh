#!/bin/bash
# The accounting database. Variables are those of the official image: MARIADB_DATABASE, MARIADB_USER, MARIADB_PASSWORD.
set -eu
data=/var/lib/mysql run=/run/mysqld
: "${MARIADB_PASSWORD:?set it to the password of the database user}"
# As root, give the folders to mysql and become it; a pod may choose the user itself.
as=()
if [ "$(id -u)" = 0 ]; then
  mkdir -p "$run"
  chown mysql:mysql "$run" "$data"
  as=(setpriv --reuid mysql --regid mysql --clear-groups)
fi
# quoted TEXT   as a string of SQL
quoted() {
  local text=${1//\\/\\\\}
  printf "'%s'" "${text//\'/\\\'}"
}
# name TEXT     as a name of SQL
name() { printf '`%s`' "${1//\`/\`\`}"; }

# Under another name first: a killed initialisation is begun anew, and what has the name is a whole database, never touched.
# Asked as mysql: root may lack the capability to look into what is mysql's, and would take it for missing.
if ! "${as[@]}" test -e "$data/db"; then
  "${as[@]}" rm -rf "$data/db.new"
  "${as[@]}" mariadb-install-db --no-defaults --datadir="$data/db.new" --auth-root-authentication-method=normal \
    --skip-test-db --skip-name-resolve --force > /dev/null
  "${as[@]}" mv --no-target-directory "$data/db.new" "$data/db"
fi
database=$(name "${MARIADB_DATABASE:-slurm_acct_db}")
user="$(quoted "${MARIADB_USER:-slurm}")@'%'"
password=$(quoted "$MARIADB_PASSWORD")
# One statement a line, at every start: a changed password is taken over.
init=$(mktemp)
cat > "$init" <<SQL
CREATE DATABASE IF NOT EXISTS $database;
CREATE USER IF NOT EXISTS $user IDENTIFIED BY $password;
ALTER USER $user IDENTIFIED BY $password;
GRANT ALL ON $database.* TO $user WITH GRANT OPTION;
SQL
if [ "$(id -u)" = 0 ]; then chown mysql:mysql "$init"; fi
# slurmdbd ends when a write conflicts under snapshot isolation; the other values are what it asks for.
exec "${as[@]}" mariadbd --no-defaults --datadir="$data/db" --socket="$run/mysqld.sock" --pid-file="$run/mysqld.pid" \
  --bind-address=0.0.0.0 --port=3306 --skip-name-resolve --init-file="$init" \
  --innodb-buffer-pool-size="${INNODB_BUFFER_POOL_SIZE:-128M}" --innodb-lock-wait-timeout=900 \
  --innodb-snapshot-isolation=OFF --max-allowed-packet=16M "$@"
