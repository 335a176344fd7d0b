# Sourced by the entrypoints: what several of them do.
JAIL=/mnt/jail

# wait_for WHAT COMMAND...   until the command succeeds; says so every 30 s, gives up after WAIT_TIMEOUT seconds.
wait_for() {
  local what=$1 since=$SECONDS next=$SECONDS limit=${WAIT_TIMEOUT:-600}
  shift
  until "$@"; do
    if ((SECONDS - since >= limit)); then
      echo "$what: not there after $limit s" >&2
      exit 1
    fi
    if ((SECONDS >= next)); then
      echo "waiting for $what since $((SECONDS - since)) s"
      next=$((SECONDS + 30))
    fi
    sleep 0.1
  done
}

wait_munge() { wait_for "the socket of munged" test -S /run/munge/munge.socket.2; }

# Users and their homes are the jail's: sshd and slurmd look them up before anybody is inside it.
use_jail_users() {
  local file
  for file in passwd group shadow gshadow; do ln -sfn "$JAIL/etc/$file" "/etc/$file"; done
  if [ ! -L /home ]; then rm -rf /home; fi
  ln -sfn "$JAIL/home" /home
}

use_jail_config() {
  rm -rf /etc/slurm
  ln -s "$JAIL/etc/slurm" /etc/slurm
}

# copy_jwt_key FOLDER   A copy and not a bind mount, which would need CAP_SYS_ADMIN.
copy_jwt_key() {
  if [ -e /mnt/rest-jwt-key/rest_jwt.key ]; then
    install -m 600 /mnt/rest-jwt-key/rest_jwt.key "$1/jwt_hs256.key"
  fi
}

# make_system_slice ROOT   Slurm puts jobs below system.slice of cgroups of version 2, which only systemd makes by itself.
# With memory.oom.group jobs end as a whole when the pod is out of memory, not by a process here and there.
make_system_slice() {
  [ -e "$1/cgroup.controllers" ] || return 0
  mkdir -p "$1/system.slice" || return 0
  if [ -w "$1/system.slice/memory.oom.group" ]; then echo 1 > "$1/system.slice/memory.oom.group"; fi
}
