/**
 * Starts podman's service in user and mount namespaces of its own, as `sh -c SCRIPT engine <socket> <store>`. The names
 * of variables that begin with CONF_ are those of files, their values what is in these.
 *
 * Everything it mounts lies in the wall: containers see no more than the programs of the conversation do. Control
 * groups are hidden because a container can be given none, and crun refuses those that a machine mounts in both
 * versions.
 */
export const ENGINE_SCRIPT = `
set -eu
socket=$1 store=$2
mount -n -t tmpfs -o mode=0755,size=64m,nosuid,nodev engine /var
mkdir /var/tmp /var/run /var/conf /var/store /var/home
mount -n --bind /tmp /var/tmp
mount -n --rbind "$store" /var/store
[ ! -d /sys/fs/cgroup ] || mount -n -t tmpfs -o mode=0555,size=4k,nosuid,nodev,noexec none /sys/fs/cgroup
driver=vfs
mkdir -p /var/store/try/low /var/store/try/up /var/store/try/work /var/store/try/all
layers=lowerdir=/var/store/try/low,upperdir=/var/store/try/up,workdir=/var/store/try/work
if mount -n -t overlay -o "$layers,userxattr" none /var/store/try/all 2> /dev/null; then
  umount -n /var/store/try/all
  driver=overlay
fi
rm -rf /var/store/try
printf '%s' "$CONF_CONTAINERS" > /var/conf/containers.conf
printf '%s' "$CONF_REGISTRIES" > /var/conf/registries.conf
printf '%s' "$CONF_RUNTIME" > /var/conf/runtime
printf '%s' '{"default":[{"type":"insecureAcceptAnything"}]}' > /var/conf/policy.json
chmod 0555 /var/conf/runtime
cat > /var/conf/storage.conf << END
[storage]
driver = "$driver"
graphroot = "/var/store/$driver"
rootless_storage_path = "/var/store/$driver"
runroot = "/var/run/storage"
[storage.options]
ignore_chown_errors = "true"
[storage.options.$driver]
ignore_chown_errors = "true"
END
unset CONF_CONTAINERS CONF_REGISTRIES CONF_RUNTIME NODE_CHANNEL_FD NODE_CHANNEL_SERIALIZATION_MODE
HOME=/var/home XDG_RUNTIME_DIR=/var/run XDG_CONFIG_HOME=/var/conf XDG_DATA_HOME=/var/store/data
XDG_CACHE_HOME=/var/store/cache
CONTAINERS_CONF=/var/conf/containers.conf
CONTAINERS_REGISTRIES_CONF=/var/conf/registries.conf
CONTAINERS_STORAGE_CONF=/var/conf/storage.conf
BUILDAH_ISOLATION=oci TMPDIR=/var/tmp
_CONTAINERS_USERNS_CONFIGURED=done _CONTAINERS_ROOTLESS_UID=0 _CONTAINERS_ROOTLESS_GID=0
export HOME XDG_RUNTIME_DIR XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME CONTAINERS_CONF CONTAINERS_REGISTRIES_CONF
export CONTAINERS_STORAGE_CONF BUILDAH_ISOLATION TMPDIR
export _CONTAINERS_USERNS_CONFIGURED _CONTAINERS_ROOTLESS_UID _CONTAINERS_ROOTLESS_GID
mkdir -p /var/conf/containers
cp /var/conf/policy.json /var/conf/containers/policy.json
exec podman system service --time 0 "unix://$socket"
`

/**
 * What podman starts in place of crun: it changes the container's settings before crun reads them. `NODE` and `CHILD`
 * stand for the program that does.
 */
export const RUNTIME_SCRIPT = `#!/bin/sh
create= bundle=
for word do
  [ "$bundle" != / ] || bundle=$word
  case $word in
    create | run) create=1 ;;
    --bundle | -b) bundle=/ ;;
    --bundle=*) bundle=\${word#*=} ;;
  esac
done
[ -z "$create" ] || 'NODE' 'CHILD' runtime "\${bundle:-.}/config.json" || exit
exec crun "$@"
`
