/**
 * The wall where bubblewrap is missing: a script for `unshare --mount --pid --ipc --fork … sh -c`.
 *
 * Its arguments are `<root|user> <uid> <gid> <setsid|exec> <PATH> <cwd>`, then triples `<operation> <from> <to>`, then `--` and the
 * program. Nothing of them is ever read as script. A new root is made below a temporary /dev, the one folder no source
 * lies in, so that a source stays reachable when its own place is hidden in the new root.
 */
export const SCRIPT = `
set -eu
mode=$1 uid=$2 gid=$3 session=$4 path=$5 cwd=$6
shift 6
new=/dev/n
mount -n -t tmpfs -o mode=0755 wall /dev
mkdir $new /dev/d
: > /dev/none
chmod 0 /dev/none
mount -n --rbind / $new
umount -n -l $new/dev
for node in null zero full random urandom tty; do
  : > /dev/d/$node
  mount -n --bind $new/dev/$node /dev/d/$node
done
mkdir /dev/d/shm /dev/d/pts /dev/d/old
mount -n -t tmpfs -o mode=1777,nosuid,nodev wall /dev/d/shm
mount -n -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts /dev/d/pts
ln -s pts/ptmx /dev/d/ptmx
ln -s /proc/self/fd /dev/d/fd
ln -s /proc/self/fd/0 /dev/d/stdin
ln -s /proc/self/fd/1 /dev/d/stdout
ln -s /proc/self/fd/2 /dev/d/stderr
mount -n --rbind /dev/d $new/dev
if [ "$mode" = root ]; then
  mount -n -o remount,bind,nosuid,nodev $new
  while read -r _ _ _ _ at _; do
    case $at in $new/sys | $new/sys/*) mount -n -o remount,bind,ro "$at" ;; esac
  done < /proc/self/mountinfo
fi
mount -n -t proc proc $new/proc
for part in sys sysrq-trigger irq bus acpi fs scsi; do
  [ -e $new/proc/$part ] || continue
  mount -n -o bind,ro $new/proc/$part $new/proc/$part
done
while [ "$1" != -- ]; do
  to=$new$3
  case $1 in
    empty)
      [ -e "$to" ] || mkdir -p "$to"
      mount -n -t tmpfs -o mode=0755,nosuid,nodev wall "$to" ;;
    hide) mount -n --bind /dev/none "$to" ;;
    seal) mount -n -o remount,bind,ro "$to" ;;
    bind | show)
      [ -e "$to" ] || mkdir -p "$to"
      mount -n --rbind "$2" "$to"
      [ "$1" = bind ] || mount -n -o remount,bind,ro "$to" ;;
    *) exit 125 ;;
  esac
  shift 3
done
shift
cd $new
pivot_root $new $new/dev/old
cd /
umount -n -l /dev/old
rmdir /dev/old
set -- sh -c 'cd -- "$1" || exit 125; PATH=$2; export PATH; shift 2; "$@"; exit $?' wall "$cwd" "$path" "$@"
[ "$session" != setsid ] || set -- setsid "$@"
if [ "$mode" = root ]; then
  exec setpriv --bounding-set -all --inh-caps -all --ambient-caps -all --no-new-privs -- "$@"
fi
exec unshare --user --map-user="$uid" --map-group="$gid" -- setpriv --no-new-privs -- "$@"
`
