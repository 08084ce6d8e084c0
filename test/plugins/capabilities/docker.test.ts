import { spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { ContainerNames, containerNamesOf } from '../../../plugins/capabilities/docker/container-names.js'
import { engineFiles, engineSettings } from '../../../plugins/capabilities/docker/engine-settings.js'
import { hiding, shellTurn, walled } from '../../attack/support.js'
import { daemonWith, folderOf, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { BUILDS, contained, withEngine } from '../../support/servers/engine.js'
import { framesOf } from '../../support/turns.js'
import { add, capabilitiesDaemon, inner, vaultFake } from './support.js'

t.test('containers are found by their names, and by nothing that is none', async t => {
  const names = new ContainerNames()
  const made = (first: string, fields: object, hosts?: unknown) =>
    names.hosts(hosts, containerNamesOf(first, { ...fields }))
  t.same(
    made('POST /v1.41/containers/create?name=w_db_1 HTTP/1.1', {
      Labels: { 'com.docker.compose.service': 'db' },
      NetworkingConfig: { EndpointsConfig: { w: { Aliases: ['store', 'bad name', 'a:b', 'localhost', '', 7] } } },
    }),
    ['w_db_1', 'db', 'store'].map(name => `${name}:127.0.0.1`),
  )
  t.same(
    made('POST /v4/libpod/containers/create HTTP/1.1', { name: 'web', Networks: { w: { aliases: ['www'] } } }, [
      'db:10.0.0.1',
    ]),
    ['db:10.0.0.1', ...['w_db_1', 'store', 'web', 'www'].map(name => `${name}:127.0.0.1`)],
  )
  for (let nth = 0; nth < 300; nth++) made('POST /containers/create HTTP/1.1', { name: `c${nth}` })
  t.same([made('x', {}).length, made('x', { labels: 3, Networks: [null] }).at(-1)], [200, 'c299:127.0.0.1'])
})

const API = 'curl -s --unix-socket ${DOCKER_HOST#unix://} http://engine'

t.test(
  'turns build images and run containers in an engine of their conversation',
  { ...walled(), ...withEngine() },
  async t => {
    // A server keeps its folders below /var, where engines have theirs.
    const folder = mkdtempSync('/var/tmp/engines-')
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    const [workspace, data] = [join(folder, 'w'), join(folder, 'd')]
    makeWorkspace(workspace)
    const options = { fakes: vaultFake().fakes, workspace, data }
    const daemon = await daemonWith(t, ['agent', 'agents', 'capabilities'], options)
    const { client } = daemon
    t.match(
      await add(daemon, { id: 'engine', kind: 'docker', config: { addressPool: '10.77.0.0/16' } }),
      exactly(
        { kind: 'log', message: 'starting an engine behind the wall' },
        { kind: 'log', message: /^podman [\d.]+ answers; it keeps images with (?:overlay|vfs)$/ },
        { kind: 'log', message: 'turns find an engine of their own in DOCKER_HOST' },
        { kind: 'status', status: { state: 'active' } },
        { kind: 'result', ok: true, id: 'engine', status: { state: 'active' } },
      ),
    )
    t.match(
      (await client.call('GET /capabilities/catalog')).cards.find(({ id }) => id === 'docker'),
      {
        ...{ connected: true, instances: exactly('engine'), singleton: true, art: /^<svg/ },
        guide: { steps: exactly(/podman/, /DOCKER_HOST/) },
      },
    )
    t.same(readdirSync(join(daemon.data, 'capabilities/engine-attempts')), [])

    await t.test('from nothing but a program', async t => {
      const [ping, built, ran, wrote, served, compat, layered] = await shellTurn(client, 'c', [
        `${API}/_ping`,
        BUILDS,
        contained('echo in a container; busybox id -u'),
        `${contained('echo written > /w/made.txt', '-v $PWD:/w')}; cat made.txt`,
        `podman --remote run -d --name serves box sh -c 'echo served > /a.html; busybox httpd -f -p 8099' `
          + '> /dev/null; '
          + 'curl -s --retry 9 --retry-connrefused localhost:8099/a.html; '
          + 'podman --remote exec serves busybox echo executed',
        `curl -s --unix-socket \${DOCKER_HOST#unix://} -H 'content-type: application/json' -d '${JSON.stringify({
          Image: 'box',
          Cmd: ['busybox', 'wget', '-q', '-O', '-', 'http://serves:8099/a.html'],
          HostConfig: { NetworkMode: 'default', PortBindings: { '80/tcp': [{ HostPort: '80' }] } },
        })}' 'http://engine/v1.40/containers/create?name=compat' > /dev/null; `
          + `curl -s -o /dev/null -w '%{http_code} ' --unix-socket \${DOCKER_HOST#unix://} -X POST `
          + `-d '{"Container":"compat"}' http://engine/v1.40/networks/w/connect; podman --remote start -a compat`,
        `printf 'FROM box\\nRUN echo layered > /layered.txt\\n' > /tmp/box/Dockerfile; `
          + 'podman --remote build -q -t layered /tmp/box > /dev/null; '
          + 'podman --remote run --rm layered busybox cat /layered.txt',
      ])
      t.equal(ping, 'OK')
      t.match(built, /^[0-9a-f]{64}$/)
      t.equal(ran, 'in a container\n0')
      t.equal(wrote, 'written')
      t.equal(served, 'served\nexecuted')
      t.equal(
        compat,
        '200 served',
        "a container made as Docker's own client makes it finds others in the network of the conversation",
      )
      t.equal(layered, 'layered')
    })

    await t.test('another conversation has its own, and a turn without the connection none', async t => {
      const [images, fetched] = await shellTurn(client, 'd', [
        'podman --remote images -q; podman --remote ps -q -a',
        'curl -s -m 2 localhost:8099/a.html || echo none',
      ])
      t.equal(images, '')
      t.match(fetched, /^none/)
      t.same(await inner(daemon, 'env.variables', { conversationId: 'c', capabilities: [] }), { variables: {} })
    })

    await t.test('what was started goes on in the next turn, unless the settings of the engine change', async t => {
      t.same(await shellTurn(client, 'c', ['curl -s localhost:8099/a.html']), ['served'])
      await add(daemon, { id: 'engine', kind: 'docker', config: { insecureRegistries: 'registry.example.org:5000' } })
      const [gone, kept] = await shellTurn(client, 'c', [
        'curl -s -m 2 localhost:8099/a.html || echo none',
        contained('echo kept'),
      ])
      t.match(gone, /^none/)
      t.equal(kept, 'kept')
    })

    await t.test('where a turn may only read, its engine writes what it keeps and nothing else', async t => {
      for (const permissionMode of ['plan', 'default'] as const) {
        const conversationId = permissionMode
        await client.call('POST /agent', { conversationId, prompt: 'ask Go on?\n| yes: y', permissionMode })
        await framesOf(client, conversationId).until(({ kind }) => kind === 'question')
        const { program, args, env, cwd } = await inner(daemon, 'agent.walled', {
          ...{ conversationId, program: '/bin/sh', args: ['-c', 'echo a > "$0/kept.txt"; echo b > tree.txt'], env: {} },
          engine: join(daemon.data, 'capabilities/engine-stores', conversationId),
        })
        spawnSync(program, args, { env, cwd })
        const [kept] = globSync(join(daemon.data, `capabilities/engine-stores/${conversationId}/*/kept.txt`))
        t.match(kept, /\/lands\/kept\.txt$/)
        t.equal(existsSync(join(daemon.workspace, 'tree.txt')), permissionMode === 'default')
        await client.call('POST /agent/stop', { conversationId })
      }
    })

    await t.test('there is one engine, which can be renamed', async t => {
      const refused = await refusalOf(() => add(daemon, { id: 'second', kind: 'docker', config: {} }))
      t.match(refused, {
        status: 409,
        message: 'engine is the connection of kind docker already: there can be one only',
      })
      await client.call('POST /capabilities/{id}/rename', { id: 'engine', to: 'boxes' })
      t.same(await shellTurn(client, 'c', [contained('echo renamed')]), ['renamed'])
    })

    await t.test('nothing of it is left once it is removed', async t => {
      await shellTurn(client, 'c', ['podman --remote run -d box busybox sleep 86399 > /dev/null'])
      await client.call('DELETE /capabilities/{id}', { id: 'boxes' })
      t.same(globSync(join(daemon.data, 'capabilities/engine-*/*')), [])
      t.same(
        globSync('/proc/[0-9]*/cmdline').filter(path => wordsOf(path).includes('sleep\0' + '86399')),
        [],
      )
      t.match((await shellTurn(client, 'c', ['echo ${DOCKER_HOST-none}']))[0], 'none')
    })
  },
)

const wordsOf = (path: string): string => {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

t.test('settings that an engine cannot have are refused, with the field', async t => {
  const unfit: [config: object, status: number, message: RegExp][] = [
    [{ gpu: 'on' }, 422, /config\.gpu: expected off, for containers reach no device/],
    [{ gpu: 'some' }, 400, /gpu/],
    [{ registryMirror: 'https://mirror.example.org' }, 400, /config\.registryMirror: expected a registry such as/],
    [{ registryMirror: 'a"\nb' }, 400, /config\.registryMirror/],
    [{ registryMirror: 'mirror.example.org:99999' }, 400, /config\.registryMirror/],
    [{ insecureRegistries: 'one.example.org\n"] x = ["' }, 400, /config\.insecureRegistries: .+found ".+ x = /],
    [{ insecureRegistries: 'a.example\n'.repeat(51) }, 400, /config\.insecureRegistries: expected at most 50 lines/],
    [{ addressPool: '8.8.8.0/24' }, 400, /config\.addressPool: expected a private network such as 10\.89/],
    [{ addressPool: '10.0.0.0/33' }, 400, /config\.addressPool/],
    [{ addressPool: '10.0.0.0/16", "size' }, 400, /config\.addressPool/],
  ]
  const { daemon } = await capabilitiesDaemon(t)
  for (const [config, status, message] of unfit) {
    const body = JSON.stringify({ id: 'engine', kind: 'docker', config })
    const answer = await daemon.fetch('/capabilities', { method: 'POST', body })
    t.equal(answer.status, status, JSON.stringify(config).slice(0, 60))
    t.match(JSON.parse(await answer.text()).message ?? '', message)
  }
  t.same((await daemon.client.call('GET /capabilities')).capabilities, [])
})

t.test('each setting is in the files that the engine reads', async t => {
  const files = engineFiles(
    engineSettings({
      config: {
        registryMirror: 'mirror.example.org:5000/hub',
        insecureRegistries: ' one.example\n\none.example\n',
        gpu: 'off',
      },
    }),
  )
  t.match(files['registries.conf'], '[[registry.mirror]]\nlocation = "mirror.example.org:5000/hub"\ninsecure = false')
  t.match(files['registries.conf'], '[[registry]]\nlocation = "one.example"\ninsecure = true')
  t.equal(files['registries.conf']!.split('one.example').length, 2)
  t.notMatch(files['containers.conf'], /subnet/)
  t.match(
    engineFiles({ insecure: [], pool: '10.1.0.0/16' })['containers.conf'],
    '{"base" = "10.1.0.0/16", "size" = 24}',
  )
})

t.test('without podman the answer says how to install it', { ...walled(), ...withEngine() }, async t => {
  if (process.getuid?.() !== 0) return void t.pass('only the superuser hides programs')
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'w'), join(folder, 'd')]
  makeWorkspace(workspace)
  const { client } = await spawnDaemon(t, { workspace, data, starter: hiding('podman') })
  const refused = await refusalOf(() => add({ client }, { id: 'engine', kind: 'docker', config: {} }))
  t.match(refused, { status: 501, message: 'podman not installed: apt-get install podman' })
  t.notOk(existsSync(join(data, 'capabilities/engine-attempts')))
  const { cards } = await client.call('GET /capabilities/catalog')
  const reason = 'podman not installed: apt-get install podman'
  t.match(
    cards.filter(({ available }) => !available),
    exactly({ id: 'docker', reason }),
  )
})
