#!/usr/bin/env bash
# stand_in_container.sh IMAGE FOLDER PROGRAM...: runs a program in FOLDER within another root, as a container runtime does,
# made of bind mounts over the folder IMAGE. They are seen in a mount namespace of this program alone, and everything of the
# host but /tmp and /run is read-only in it. TREES: folders that it shows, parted by colons; BUILD: what lies in
# /opt/scalemark there.
set -e
if [ -z "$SMK_TEST_NAMESPACE" ]; then SMK_TEST_NAMESPACE=1 exec unshare -m bash "$0" "$@"; fi
root=$1 folder=$2
shift 2
show() { # FOLDER PLACE [ro]
  mkdir -p "$root$2"
  mount --rbind "$1" "$root$2"
  if [ -n "$3" ]; then mount -o remount,bind,ro "$root$2"; fi
}
mount --make-rprivate /
mount -t tmpfs container "$root"
for name in usr bin sbin lib lib64 etc; do
  if [ -L "/$name" ]; then cp -P "/$name" "$root/"; elif [ -d "/$name" ]; then show "/$name" "/$name" ro; fi
done
for name in proc sys dev run; do show "/$name" "/$name"; done
IFS=:
for tree in $TREES; do show "$tree" "$tree" ro; done
show "$BUILD" /opt/scalemark ro
show /tmp /tmp
mkdir "$root/.singularity.d"
exec chroot "$root" env --chdir="$folder" "$@"
