#!/bin/bash
# Makes the secrets of a by-hand cluster, each unless it is there. Needs kubectl, ssh-keygen and a KUBECONFIG.
#   secrets.sh NAMESPACE
set -eu
namespace=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
have=$(kubectl --namespace "$namespace" get secrets -o name)

# make NAME ARGUMENTS...
make() {
  local name=$1
  shift
  if grep -qx "secret/$name" <<< "$have"; then return; fi
  kubectl --namespace "$namespace" create secret generic "$name" "$@"
}

head -c 1024 /dev/urandom > "$work/munge.key"
head -c 32 /dev/urandom > "$work/rest_jwt.key"
make demo-munge --from-file="$work/munge.key"
make demo-rest-jwt-key --from-file="$work/rest_jwt.key"

keys=()
for type in rsa ecdsa ed25519; do
  ssh-keygen -q -t "$type" -N '' -C demo -f "$work/ssh_host_${type}_key"
  keys+=(--from-file="$work/ssh_host_${type}_key" --from-file="$work/ssh_host_${type}_key.pub")
done
make demo-sshd-keys "${keys[@]}"

# One password in two secrets: what the first has goes into the second, also if an earlier run ended between them.
head -c 24 /dev/urandom | base64 | tr '+/' '-_' | tr -d '\n' > "$work/password"
make mariadb-password --from-file="$work/password"
password=$(kubectl --namespace "$namespace" get secret mariadb-password -o 'jsonpath={.data.password}' | base64 --decode)
cat > "$work/slurmdbd.conf" <<C
AuthType=auth/munge
SlurmUser=root
LogFile=/dev/null
PidFile=/var/run/slurmdbd.pid
DbdHost=accounting
DbdPort=6819
StorageLoc=slurm_acct_db
StorageType=accounting_storage/mysql
StorageUser=slurm
StoragePass=$password
StorageHost=demo-acct-db
StoragePort=3306
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/var/spool/slurmdbd/jwt_hs256.key
DebugLevel=info
C
make demo-slurmdbd-configs --from-file="$work/slurmdbd.conf"
