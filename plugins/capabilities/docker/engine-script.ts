/**
 * Where an engine keeps what goes when it ends: in memory, in a folder that each program behind a wall has for itself.
 * In one that it shares, programs of other turns would find its socket, and nothing of theirs may lie below it.
 */
export const ENGINE_FOLDER = '/var/tmp/engine'
export const ENGINE_SOCKET = `${ENGINE_FOLDER}/engine.sock`

/**
 * Starts podman's service in user and mount namespaces of its own, as `sh -c SCRIPT engine <store>`. The names of
 * variables that begin with CONF_ are those of files, their values what is in these.
 *
 * Everything it mounts lies in the wall: containers see no more than the programs of the conversation do. Control
 * groups are hidden because a container can be given none, and crun refuses those that a machine mounts in both
 * versions.
 */
export const ENGINE_SCRIPT = `
set -eu
# podman also writes in /var itself, in which there may be folders that the wall shows: the working folder stays below.
cd /var
mount -n -t tmpfs -o mode=0755,size=64m,nosuid,nodev engine /var
for name in *; do
  [ ! -d "./$name" ] || { mkdir "/var/$name" && mount -n -c --rbind "./$name" "/var/$name"; }
done
cd ${ENGINE_FOLDER}
mkdir run conf conf/containers store home
mount -n --rbind "$1" store
[ ! -d /sys/fs/cgroup ] || mount -n -t tmpfs -o mode=0555,size=4k,nosuid,nodev,noexec none /sys/fs/cgroup
driver=vfs
try=${ENGINE_FOLDER}/store/try
mkdir -p $try/low $try/up $try/work $try/all
layers=lowerdir=$try/low,upperdir=$try/up,workdir=$try/work
if mount -n -t overlay -o "$layers,userxattr" none $try/all 2> /dev/null; then
  umount -n $try/all
  driver=overlay
fi
rm -rf $try
printf '%s' "$CONF_CONTAINERS" > conf/containers.conf
printf '%s' "$CONF_REGISTRIES" > conf/registries.conf
printf '%s' "$CONF_RUNTIME" > conf/runtime
printf '%s' '{"default":[{"type":"insecureAcceptAnything"}]}' > conf/containers/policy.json
chmod 0555 conf/runtime
cat > conf/storage.conf << END
[storage]
driver = "$driver"
graphroot = "${ENGINE_FOLDER}/store/$driver"
rootless_storage_path = "${ENGINE_FOLDER}/store/$driver"
runroot = "${ENGINE_FOLDER}/run/storage"
[storage.options]
ignore_chown_errors = "true"
[storage.options.$driver]
ignore_chown_errors = "true"
END
unset CONF_CONTAINERS CONF_REGISTRIES CONF_RUNTIME NODE_CHANNEL_FD NODE_CHANNEL_SERIALIZATION_MODE
HOME=$PWD/home XDG_RUNTIME_DIR=$PWD/run XDG_CONFIG_HOME=$PWD/conf XDG_DATA_HOME=$PWD/store/data
XDG_CACHE_HOME=$PWD/store/cache
CONTAINERS_CONF=$PWD/conf/containers.conf
CONTAINERS_REGISTRIES_CONF=$PWD/conf/registries.conf
CONTAINERS_STORAGE_CONF=$PWD/conf/storage.conf
BUILDAH_ISOLATION=oci TMPDIR=/tmp
_CONTAINERS_USERNS_CONFIGURED=done _CONTAINERS_ROOTLESS_UID=0 _CONTAINERS_ROOTLESS_GID=0
export HOME XDG_RUNTIME_DIR XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME CONTAINERS_CONF CONTAINERS_REGISTRIES_CONF
export CONTAINERS_STORAGE_CONF BUILDAH_ISOLATION TMPDIR
export _CONTAINERS_USERNS_CONFIGURED _CONTAINERS_ROOTLESS_UID _CONTAINERS_ROOTLESS_GID
cd /
exec podman system service --time 0 unix://${ENGINE_SOCKET}
`

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

/** What podman starts in place of crun: a program of Node changes the container's settings before crun reads them. */
export const runtimeScript = (node: string, child: string): string => `#!/bin/sh
create= bundle=
for word do
  [ "$bundle" != / ] || bundle=$word
  case $word in
    create | run) create=1 ;;
    --bundle | -b) bundle=/ ;;
    --bundle=*) bundle=\${word#*=} ;;
  esac
done
[ -z "$create" ] || ${quoted(node)} ${quoted(child)} runtime "\${bundle:-.}/config.json" || exit
exec crun "$@"
`
