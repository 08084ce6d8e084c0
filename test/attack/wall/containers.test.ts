import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import t from 'tap'
import { BUILDS, contained, withEngine } from '../../support/servers/engine.js'
import { add, vaultFake } from '../../plugins/capabilities/support.js'
import { daemonWith } from '../../support/daemon.js'
import { joined } from '../../support/joined.js'
import { exactly, spread } from '../../support/lists.js'
import { machineService } from '../network/machine-service.js'
import { daemonOf } from '../network/user-daemon.js'
import { shellTurn, walled } from '../support.js'
import { USERS } from '../users.js'

/** Ways in which a container is given a folder; each prints what it finds of the file. */
const WAYS: { readonly [name: string]: (folder: string, file: string) => string } = {
  '-v': (folder, file) => contained(`busybox cat /m/${file}`, `-v ${folder}:/m`),
  '--mount, privileged': (folder, file) =>
    contained(`busybox cat /m/${file}`, `--privileged --mount type=bind,src=${folder},dst=/m,bind-propagation=rslave`),
  'a volume of the engine': (folder, file) =>
    `podman --remote volume create --opt type=none --opt o=bind --opt device=${folder} v 2>&1;`
    + `${contained(`busybox cat /m/${file}`, '-v v:/m')}; podman --remote volume rm -f v`,
  "Docker's interface": (folder, file) =>
    `curl -s --unix-socket \${DOCKER_HOST#unix://} -H 'content-type: application/json' -d '${JSON.stringify({
      Image: 'box',
      Cmd: ['busybox', 'cat', `/m/${file}`],
      HostConfig: { Binds: [`${folder}:/m`], Privileged: true, PidMode: 'host', UsernsMode: 'host', IpcMode: 'host' },
    })}' 'http://engine/v1.40/containers/create?name=api'; podman --remote start -a api 2>&1; `
    + 'podman --remote rm -f api 2>&1',
  'its root': (folder, file) =>
    `podman --remote run --rm --privileged --rootfs ${folder} /${file} 2>&1; `
    + `podman --remote run --rm --rootfs ${folder} /bin/busybox cat /${file} 2>&1`,
  'a mount from inside': (folder, file) =>
    contained(
      `for p in /proc/1/root /proc/2/root /host; do busybox cat $p${folder}/${file}; done;`
        + ` busybox mkdir /m; busybox mount -o bind /host${folder} /m && busybox cat /m/${file};`
        + ` busybox umount -l /host${folder}; busybox umount -l /host/proc/sys; busybox cat /host${folder}/${file};`
        + ' busybox mount -t proc none /m; busybox mount -t sysfs none /m',
      '--privileged -v /:/host',
    ),
  'an image': (folder, file) =>
    `printf 'FROM box\\nCOPY ${file} /found\\nRUN busybox cat /found\\n' > /tmp/box/Other; `
    + `podman --remote build --no-cache -f /tmp/box/Other ${folder} 2>&1; `
    + `printf 'FROM box\\nRUN busybox cat /m/${file}\\n' > /tmp/box/More; `
    + `podman --remote build --no-cache -v ${folder}:/m -f /tmp/box/More /tmp/box 2>&1`,
}

const SECRET = 'found-what-is-closed'

for (const [user, uid] of USERS)
  t.test(
    `${user}: a container finds no more of the machine than the commands of its turn`,
    { ...walled(), ...withEngine(), timeout: 600_000 },
    async t => {
      const daemon = await daemonOf(t, uid, { 'read.txt': 'a file of the code\n' })
      const { client, data, workspace } = daemon
      for await (const _ of await client.call('POST /capabilities', { id: 'engine', kind: 'docker', config: {} }));
      const home = dirname(workspace)
      writeFileSync(join(home, 'private.txt'), SECRET)
      mkdirSync(join(data, 'other'), { recursive: true })
      writeFileSync(join(data, 'other/secret.txt'), SECRET)
      const isolated = { isolated: true }
      await shellTurn(client, 'other', [`echo ${SECRET} > copied.txt; echo ${SECRET} > ~/home.txt`, BUILDS], isolated)
      const others = [...globSync(join(data, '**/copied.txt')), ...globSync(join(data, '**/home.txt'))]
      t.equal(others.length, 2, 'the other conversation has its files')
      const machine = await machineService(t)

      const closed = [join(home, 'private.txt'), join(data, 'other/secret.txt'), ...others]
      const cases = Object.entries(WAYS).flatMap(([name, way]) =>
        closed.flatMap(path =>
          [dirname(path), dirname(dirname(path)), '/'].map(folder => ({
            name: `${name}: ${relative(home, path)} from ${folder === '/' ? '/' : relative(home, folder)}`,
            command: way(folder, relative(folder, path)),
          })),
        ),
      )
      const core = readFileSync('/proc/sys/kernel/core_pattern', 'utf8')
      const tried = spread(cases, 14, 21)
      const [built, control, ...said] = await shellTurn(
        client,
        'c',
        [BUILDS, contained('busybox cat /m/read.txt', '-v $PWD:/m'), ...tried.map(({ command }) => command)],
        isolated,
      )
      t.match(built, /^[0-9a-f]{64}$/)
      t.equal(control, 'a file of the code', 'what the turn sees can be mounted')
      const found = tried.filter((_, at) => said[at]!.includes(SECRET)).map(({ name }) => name)
      t.strictSame(found, [], `${tried.length} of ${cases.length} attempts`)

      const tries = await shellTurn(
        client,
        'c',
        [
          contained('busybox wget -T 3 -q -O - http://127.0.0.1:' + machine.port, '--network host --privileged'),
          contained('busybox echo "|/bin/false" > /proc/sys/kernel/core_pattern', '--privileged --pid host'),
          contained(
            'busybox mount -o remount,rw /proc/sys; echo "|/bin/false" > /proc/sys/kernel/core_pattern',
            '--privileged',
          ),
          contained('echo "|/bin/false" > /p/sys/kernel/core_pattern', '--privileged -v /proc:/p'),
          contained('busybox ls /dev', '--privileged -v /dev:/dev2 --device /dev/kmsg'),
          contained('busybox mknod /d b 8 0; busybox mknod /k c 1 11; busybox head -c 1 /k', '--privileged'),
          contained('echo x > /s/new; busybox ls /s', '-v /run/sandbox-engine:/s'),
          contained('echo x > /w/.sandbox/config/settings.json', '-v $PWD:/w --privileged'),
          'ls /run/sandbox-engine; rm -f /run/sandbox-engine/engine.sock; ln -s /x /run/sandbox-engine/y',
          'find /tmp /var/tmp /run /dev "$HOME" -type s -name "*engine*" 2> /dev/null',
        ],
        isolated,
      )
      t.strictSame(machine.seen, [], 'the machine has another network')
      t.equal(readFileSync('/proc/sys/kernel/core_pattern', 'utf8'), core)
      t.notMatch(tries[4], /kmsg\n|sda|vda/)
      t.notMatch(tries[5], /^\d/)
      for (const at of [6, 7, 8]) t.match(tries[at], /read-only file system/i, `${at}: ${tries[at]}`)
      t.strictSame(globSync(join(data, 'capabilities/engine-doors/*/*')).length, 2)
      t.equal(
        tries[9],
        '/run/sandbox-engine/engine.sock',
        'the engine has no other door, which a later turn would find',
      )

      const fixed = 'RUN busybox mkdir /kept && busybox touch /kept/file && busybox chmod 555 /kept'
      const [layered] = await shellTurn(
        client,
        'c',
        [`printf 'FROM box\\n${fixed}\\n' > /tmp/box/Fixed; podman --remote build -q -f /tmp/box/Fixed /tmp/box`],
        isolated,
      )
      t.match(layered, /^[0-9a-f]{64}$/)
      await client.call('POST /agents/{id}/discard', { id: 'c' })
      t.strictSame(
        globSync(join(data, 'capabilities/engine-{stores,doors}/c')),
        [],
        'read-only folders of images go too',
      )
    },
  )

t.test(
  'work that lands finds no image, container, volume or server of work that does not, and the other way round',
  { ...walled(), ...withEngine(), timeout: 300_000 },
  async t => {
    const daemon = await daemonWith(t, ['agent', 'agents', 'capabilities', 'system'], { fakes: vaultFake().fakes })
    const { client } = daemon
    await add(daemon, { id: 'engine', kind: 'docker', config: {} })
    const eve = (await joined(daemon, 'eve', 'collaborator')).client
    const lands = { isolated: true, autoLand: true }
    const outside = { isolated: true, outsideWake: 'webhook' }
    const leaves =
      "podman --remote run -d --name serves -v kept:/v box sh -c 'echo found > /i.html; busybox httpd -f -p 8088' "
      + '> /dev/null; curl -s --retry 9 --retry-connrefused localhost:8088/i.html'
    const finds =
      'curl -s -m 2 localhost:8088/i.html; podman --remote ps -a -q; podman --remote images -q; '
      + 'podman --remote volume ls -q; echo over'
    const left = exactly(/^[0-9a-f]{64}$/, 'found')

    t.match(await shellTurn(client, 'c', [BUILDS, leaves], lands), left)
    t.same(await shellTurn(eve, 'c', [finds], { isolated: true }), ['over'], 'a collaborator in the conversation')
    t.match(await shellTurn(eve, 'c', [BUILDS, leaves], { isolated: true }), left)
    t.same(await shellTurn(client, 'n', [finds], lands), ['over'], 'a new conversation')
    t.match(await shellTurn(client, 'o', [BUILDS, leaves], outside), left)
    t.same(await shellTurn(client, 'o', [finds], lands), ['over'], 'after a wake from outside')
  },
)

t.test(
  'a turn that reaches less finds neither the engine of the turn before nor what runs in it',
  { ...walled(), ...withEngine(), timeout: 300_000 },
  async t => {
    const groups = ['agent', 'agents', 'capabilities', 'personas', 'skills', 'settings']
    const files = { 'docs/a.md': 'open\n', 'src/b.md': `${SECRET}\n` }
    const daemon = await daemonWith(t, groups, { fakes: vaultFake().fakes, files })
    const { client } = daemon
    await add(daemon, { id: 'engine', kind: 'docker', config: {} })
    await client.call('POST /personas', { id: 'reader', capabilities: ['engine'], workspace: { folders: ['docs'] } })
    const serves =
      'podman --remote run -d -v $PWD:/w box busybox httpd -f -p 8066 -h /w > /dev/null; '
      + 'curl -s --retry 9 --retry-connrefused localhost:8066/src/b.md'
    t.equal((await shellTurn(client, 'c', [BUILDS, serves]))[1], SECRET)
    const said = await shellTurn(
      client,
      'c',
      [
        'curl -s -m 2 localhost:8066/src/b.md',
        contained('busybox find /w', '-v $PWD/..:/w'),
        contained('busybox cat /w/docs/a.md', '-v $PWD/..:/w'),
      ],
      { actsAs: 'reader' },
    )
    t.notMatch(said.join('\n'), new RegExp(`${SECRET}|b\\.md`))
    t.equal(said[2], 'open')
  },
)
