# Sourced by the layers: `install_packages NAME` installs the packages of packages/NAME.txt, and nothing they only recommend.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export DEBIAN_FRONTEND=noninteractive
# Documentation is not for containers. Testing carries a Valid-Until that a machine with a late clock has passed.
apt_options=(-qq -y -o Acquire::Check-Valid-Until=false -o Acquire::Languages=none -o Acquire::Retries=3
  -o APT::Install-Recommends=false -o APT::Sandbox::User=root)
for path in doc info lintian locale man bash-completion; do
  apt_options+=(-o "Dpkg::Options::=--path-exclude=/usr/share/$path/*")
done
apt_options+=(-o 'Dpkg::Options::=--path-include=/usr/share/doc/*/copyright')

install_packages() {
  local packages
  mapfile -t packages < <(grep -v '^#' "$here/packages/$1.txt")
  # Also those that only one release of Slurm has.
  if [ -e "$here/packages/$1-${SUITE:-}.txt" ]; then
    mapfile -t -O "${#packages[@]}" packages < <(grep -v '^#' "$here/packages/$1-$SUITE.txt")
  fi
  apt-get "${apt_options[@]}" update
  apt-get "${apt_options[@]}" install "${packages[@]}"
}

# What a build leaves and what would differ from one build to the next.
clean() {
  apt-get clean
  rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/* /var/lib/dpkg/*-old /etc/{passwd,group,shadow,gshadow}- \
    /var/lib/systemd/{catalog,deb-systemd-helper-enabled,deb-systemd-user-helper-enabled} /etc/machine-id
}
