/**
 * The end of a wall in which no program of the system is: the shell keeps its folder in the old root, so that it starts
 * the last programs from there after the old root is gone from the tree, with the libraries that `path` names from that
 * folder. `env` leaves the folder before the program starts, and the first process afterwards.
 */
const TIGHT = `
{ echo extension > /proc/sys/kernel/hostname; } 2> /dev/d/null || hostname extension
cd "\${path%%:*}"
pivot_root $new $new/dev/old
LD_LIBRARY_PATH=\${path#*:}
export LD_LIBRARY_PATH
./umount -n -l /dev/old
./rmdir /dev/old
if [ "$mode" = root ]; then
  set -- ./setpriv --bounding-set -all --inh-caps -all --ambient-caps -all --no-new-privs -- "$@"
else
  set -- ./unshare --user --map-user="$uid" --map-group="$gid" -- ./setpriv --no-new-privs -- "$@"
fi
"$@" &
cd /
wait $! || exit $?
exit 0
`

/**
 * The wall without bubblewrap: a script for `unshare --mount --pid --ipc --fork … sh -c`.
 *
 * Its arguments are `<root|user> <uid> <gid> <setsid|exec|tight> <PATH> <cwd>`, the number of folders to make in the
 * new root and these folders, then triples `<operation> <from> <to>`, then `--` and the program. The operation `made`
 * comes before one that lies in an earlier mount, which must be there then. None of them is evaluated as script. The
 * new root is made below a temporary /dev, which contains no source, so that all sources stay reachable until the new
 * root replaces the old one.
 */
export const SCRIPT = `
set -eu
mode=$1 uid=$2 gid=$3 session=$4 path=$5 cwd=$6
shift 6
new=/dev/n
mount -n -t tmpfs -o mode=0755 wall /dev
mkdir $new /dev/r /dev/d
mount -n --rbind / /dev/r
umount -n -l /dev/r/dev
mount -n -t tmpfs -o mode=0755,nosuid,nodev wall $new
: > /dev/none
chmod 0 /dev/none
mkdir /dev/d/shm /dev/d/pts /dev/d/old
table=
# A mount for later: a source, a target, a type and options (fstab(5)), which one program makes together with others.
later() {
  table="$table$1 $2 $3 $4
"
}
now() {
  case $4 in
    rbind,ro,*) mount -n -o "$4" "$1" "$2" 2> /dev/d/null || { mount -n --rbind "$1" "$2"; protect "$2"; } ;;
    *) mount -n -t "$3" -o "$4" "$1" "$2" ;;
  esac
}
# Makes the mounts that wait, in their order; where one fails, each by itself.
made() {
  [ "$table" ] || return 0
  printf '%s' "$table" > /dev/table
  table=
  mount -n -a -T /dev/table 2> /dev/d/null && return
  while read -r source target type options; do now "$source" "$target" "$type" "$options"; done < /dev/table
}
protect() {
  mount -n -o remount,bind,ro,nosuid,nodev "$1" 2> /dev/d/null || mount -n -o remount,bind,ro,nosuid,nodev,noexec "$1"
}
for node in null zero full random urandom tty; do
  : > /dev/d/$node
  later /dev/r/dev/$node /dev/d/$node none bind
done
later wall /dev/d/shm tmpfs mode=1777,nosuid,nodev
later devpts /dev/d/pts devpts newinstance,ptmxmode=0666,mode=620
made
ln -s pts/ptmx /dev/d/ptmx
ln -s /proc/self/fd /dev/d/fd
ln -s /proc/self/fd/0 /dev/d/stdin
ln -s /proc/self/fd/1 /dev/d/stdout
ln -s /proc/self/fd/2 /dev/d/stderr
mkdir $new/dev $new/proc $new/sys
count=$1
shift
n=0
folders=
while [ $n -lt $count ]; do
  n=$((n + 1))
  folders="$folders \\"\\\${$n}\\""
done
cd $new
# Names of arguments, not what is in them.
eval "mkdir -p -- $folders"
cd /
shift $count
mount -n --rbind /dev/d $new/dev
if [ "$session" != tight ]; then
  mount -n --rbind /sys $new/sys
  while read -r _ _ _ _ at _; do
    case $at in $new/sys | $new/sys/*) mount -n -o remount,bind,ro,nosuid,nodev,noexec "$at" ;; esac
  done < /proc/self/mountinfo
fi
mount -n -t proc proc $new/proc
for part in sys sysrq-trigger irq bus acpi fs scsi; do
  [ ! -e $new/proc/$part ] || later $new/proc/$part $new/proc/$part none bind,ro
done
made
# Makes what a mount needs to lie on: a folder where "$1" is empty or names one, else a file.
place() {
  [ -e "$to" ] && return
  if [ -z "$1" ] || [ -d "$1" ]; then mkdir -p "$to"; return; fi
  mkdir -p "\${to%/*}"
  : > "$to"
}
while [ "$1" != -- ]; do
  from=$2 to=$new$3
  # The machine's own /dev is covered by now.
  case $1$2 in bind/dev/* | show/dev/*) from=/dev/r$2 ;; esac
  # A table has its own way to write other characters.
  case $from$3 in
    *[!A-Za-z0-9/._@+,=:-]*) made; add=now ;;
    *) add=later ;;
  esac
  case $1 in
    made) made ;;
    empty) place ''; $add wall "$to" tmpfs mode=0755,nosuid,nodev ;;
    hide) $add /dev/none "$to" none bind ;;
    seal) made; protect "$to" ;;
    link) [ -d "\${to%/*}" ] || mkdir -p "\${to%/*}"; ln -s "$2" "$to" ;;
    bind) place "$from"; $add "$from" "$to" none rbind ;;
    show) place "$from"; $add "$from" "$to" none rbind,ro,nosuid,nodev ;;
    *) exit 125 ;;
  esac
  shift 3
done
made
shift
[ "$session" != tight ] || {
${TIGHT}
}
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
