#!/bin/bash
# Makes one layer without a container engine.
#   layer.sh base SUITE OUT MIRROR        a new root, from nothing
#   layer.sh NAME SUITE OUT LOWER         what NAME.sh changes in a root that shows LOWER (a colon list, top first)
# Runs as root in mount and pid namespaces of its own, with mmdebstrap in PATH. OUT/root is the result.
set -eu
name=$1 suite=$2 out=$3 from=$4
images=$(realpath "$(dirname "$0")/..")
# Accounts carry the day of their last change, and what package scripts write the time of the build.
export SOURCE_DATE_EPOCH=1767225600 SUITE=$suite
began=$(date +%s)
settle_times() {
  find "$out/root" -newermt "@$((began - 1))" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
}

if [ "$name" = base ]; then
  mmdebstrap --mode=root --variant=apt --aptopt='Acquire::Check-Valid-Until "false"' \
    --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/info/*' --dpkgopt='path-exclude=/usr/share/lintian/*' \
    --customize-hook="mount --bind '$images' \"\$1/srv\"; chroot \"\$1\" bash /srv/layers/base.sh; umount \"\$1/srv\"" \
    --customize-hook='rm -f "$1"/etc/apt/apt.conf.d/99mmdebstrap "$1"/etc/dpkg/dpkg.cfg.d/99mmdebstrap' \
    --customize-hook=': > "$1"/etc/resolv.conf' \
    "$suite" "$out/root" "$from"
  # Whose it is depends on whether apt's own user can reach the folder that we build in.
  rmdir "$out/root/var/lib/apt/lists/partial"
  settle_times
  exit
fi

mkdir "$out/root" "$out/work" "$out/view"
view=$out/view
mount -t overlay overlay -o "lowerdir=$from,upperdir=$out/root,workdir=$out/work" "$view"
mount --bind "$images" "$view/srv"
mount --bind /etc/resolv.conf "$view/etc/resolv.conf"
mount -t proc proc "$view/proc"
for folder in tmp run dev var/lib/apt/lists var/cache var/log; do mount -t tmpfs tmpfs "$view/$folder"; done
mkdir -p "$view/var/lib/apt/lists/partial" "$view/var/cache/apt/archives/partial"
for device in null zero random urandom; do
  touch "$view/dev/$device"
  mount --bind "/dev/$device" "$view/dev/$device"
done
ln -s /proc/self/fd "$view/dev/fd"
# Package scripts start no services.
printf '#!/bin/sh\nexit 101\n' > "$view/usr/sbin/policy-rc.d"
chmod +x "$view/usr/sbin/policy-rc.d"
chroot "$view" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH SUITE="$suite" \
  bash "/srv/layers/$name.sh"
rm "$view/usr/sbin/policy-rc.d"
umount --recursive "$view"
rm -rf "$out/view" "$out/work"
settle_times
