/** The start of every script: where what this sandbox runs lies on a machine, and the programs that run it. */
const BEGIN = `
set -eu
umask 077
id=$1 engine=$2
base="$HOME/.local/share/sandbox-deploy/$id"
# No entry may have a name with a point.
project() { printf 'sb-%s-%s' "$id" "$1" | tr A-Z a-z; }
compose() {
  if [ "$engine" = docker ]; then docker compose "$@"; else podman-compose "$@"; fi
}
label=com.docker.compose.project
running() { "$engine" ps -q --filter "label=$label=$(project "$1")" --filter status=running | wc -l; }
need() { command -v "$1" > /dev/null 2>&1 || { echo "$1 is not installed on this machine" >&2; exit 1; }; }
need "$engine"
if [ "$engine" = docker ]; then
  docker compose version > /dev/null 2>&1 || { echo "docker compose is not installed on this machine" >&2; exit 1; }
else need podman-compose; fi
`

/** Says of everything that this sandbox runs: its name, what tells its configuration from others, and how many run. */
export const LOOK = `${BEGIN}
[ -d "$base" ] || exit 0
cd "$base"
for file in */compose.json; do
  [ -f "$file" ] || continue
  name=\${file%/compose.json}
  case $name in *[!A-Za-z0-9_]*) continue;; esac
  digest=$(cat "$name/digest" 2> /dev/null || echo none)
  echo "node $name $digest $(running "$name")"
done
`

/** Keeps others from changing what runs, as long as its input is open: the system releases it with the process. */
export const LOCK = `${BEGIN}
mkdir -p "$base"
need flock
exec 9> "$base/apply.lock"
flock -n 9 || { echo "another apply is at work on this machine: try again when it is over" >&2; exit 75; }
flock -w 120 "$base/work.lock" true || { echo "an apply that was cut off still works: try again later" >&2; exit 75; }
echo locked
cat > /dev/null
`

/** Puts what it reads, an archive, in the place of what runs under a name, and starts it. */
export const PUT = `${BEGIN}
name=$3 digest=$4 image=$5
project=$(project "$name")
mkdir -p "$base"
cd "$base"
next="next-$name"
rm -rf "$next"
mkdir "$next"
tar -xpf - -C "$next"
if [ -d "$next/source" ]; then
  "$engine" build -t "$image" "$next/source" 2>&1
  rm -rf "$next/source"
fi
if [ -f "$name/compose.json" ]; then
  rm -f "$name/digest"
  (cd "$name" && compose -p "$project" -f compose.json down > /dev/null 2>&1) || true
fi
rm -rf "$name"
mv "$next" "$name"
cd "$name"
compose -p "$project" -f compose.json up -d > up.log 2>&1 || { tail -n 5 up.log >&2; exit 1; }
tries=0
until [ "$(running "$name")" -gt 0 ] && sleep 1 && [ "$(running "$name")" -gt 0 ]; do
  tries=$((tries + 1))
  if [ $tries -gt 20 ]; then
    tail -n 3 up.log >&2
    for each in $("$engine" ps -aq --filter "label=$label=$project"); do
      "$engine" logs --tail 5 "$each" >&2 || true
    done
    echo "$name does not stay up" >&2
    exit 1
  fi
  sleep 0.5
done
rm -f up.log
printf '%s' "$digest" > digest
"$engine" images --format '{{.Repository}}:{{.Tag}}' | grep "^localhost/$project:" | grep -vxF "$image" |
  while read -r old; do "$engine" rmi "$old" > /dev/null 2>&1 || true; done
`

/** Ends what runs under a name and removes its files; volumes stay. */
export const REMOVE = `${BEGIN}
name=$3
project=$(project "$name")
cd "$base"
if [ -f "$name/compose.json" ]; then
  (cd "$name" && compose -p "$project" -f compose.json down > /dev/null 2>&1) || true
fi
for each in $("$engine" ps -aq --filter "label=$label=$project"); do
  "$engine" rm -f "$each" > /dev/null
done
"$engine" network rm "\${project}_default" > /dev/null 2>&1 || true
"$engine" images --format '{{.Repository}}:{{.Tag}}' | grep "^localhost/$project:" |
  while read -r old; do "$engine" rmi "$old" > /dev/null 2>&1 || true; done
rm -rf "$name" "next-$name"
"$engine" volume ls -q --filter "label=$label=$project"
`

/** Runs a script alone: one whose connection was cut goes on by itself, and is waited for. */
const ALONE = `
umask 077
base="$HOME/.local/share/sandbox-deploy/$1"
id=$1 script=$2
shift 2
mkdir -p "$base"
# The lock is that of flock itself: what it starts, such as a container, does not hold it.
exec flock -o "$base/work.lock" sh -c "$script" sh "$id" "$@"
`

/** A script that changes something, as it is run on a machine. */
export const alone = (script: string, [id = '', ...args]: readonly string[]) => ({
  script: ALONE,
  args: [id, script, ...args],
})
