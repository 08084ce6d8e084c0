import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import type { RunningDaemon } from '../support/daemon.js'
import { writeExtension } from '../plugins/extensions/support.js'
import { daemonOf } from './network/user-daemon.js'
import { answersOf, runs, shellTurn, walled } from './support.js'
import { framesOf } from '../support/turns.js'
import { USERS } from './users.js'

t.setTimeout(240_000)

const WORDS = 'the words of a program of an extension'
/** Serves its words on the port that it was given, and says where that is. */
const SERVES = `
require('node:http').createServer((_, answer) => answer.end('${WORDS}')).listen(Number(process.env.PORT))
require('node:fs').writeFileSync(process.env.SANDBOX_EXTENSION_DATA + '/port', process.env.PORT)
`
/** A backend that listens on every address it can, and asks the other extension's program. */
const LISTENS = `
import { createServer } from 'node:http'
export const activate = host => {
  host.routes.handle('GET /listen', {}, () => new Promise(resolve => {
    const server = createServer((_, answer) => answer.end('${WORDS}'))
    server.once('error', error => resolve({ body: { error: error.code } }))
    server.listen(47391, () => resolve({ body: { port: server.address().port } }))
  }))
  host.routes.handle('GET /ask/{port}', {}, async ({ params }) => {
    const tried = {}
    for (const url of ['http://127.0.0.1:' + params.port, 'http://localhost:' + params.port])
      tried[url] = await host.fetch(url).then(answer => answer.text(), error => error.code ?? String(error))
    tried.own = await fetch('http://127.0.0.1:' + params.port).then(answer => answer.text(), () => 'refused')
    return { body: tried }
  })
}
`
const MANIFEST = { publisher: 'eve', version: '1.0.0' }
const SERVING = {
  ...MANIFEST,
  name: 'serves',
  contributes: { processes: [{ name: 'p', command: 'node p.cjs', port: 'auto', autoStart: true }] },
}
const LISTENING = { ...MANIFEST, name: 'listens', server: 'server.js' }

const until = async <T>(what: string, find: () => Promise<T | undefined> | T | undefined): Promise<T> => {
  for (const end = Date.now() + 40_000; ;) {
    const found = await find()
    if (found !== undefined) return found
    if (Date.now() > end) throw new Error(`it did not become so: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 100))
  }
}

const approved = async ({ client }: RunningDaemon, id: string): Promise<void> => {
  const { digest } = await until('pending', async () =>
    (await client.call('GET /extensions')).pending.find(each => each.id === id),
  )
  await client.call('POST /extensions/{id}/approve', { id, digest })
}

const answers = (port: number): Promise<boolean> =>
  new Promise(resolve => {
    const socket = createConnection({ port, host: '127.0.0.1' }, () => (socket.destroy(), resolve(true)))
    socket.once('error', () => resolve(false))
  })

const textAt = (port: number | string): string => {
  try {
    return execFileSync('curl', ['-sS', '-m', '5', `http://127.0.0.1:${port}/`], { encoding: 'utf8', stdio: 'pipe' })
  } catch {
    return 'refused'
  }
}

for (const [user, uid] of USERS)
  t.test(`${user}: who reaches what an extension listens on`, walled(), async t => {
    const daemon = await daemonOf(t, uid, { 'README.md': '# work\n' })
    const { client, url, session, data, workspace } = daemon
    writeExtension(daemon, 'serves', SERVING, { 'p.cjs': SERVES })
    writeExtension(daemon, 'listens', LISTENING, { 'server.js': LISTENS })
    if (uid !== process.getuid?.()) execFileSync('chown', ['-R', `${uid}:${uid}`, join(workspace, '.sandbox')])
    await approved(daemon, 'eve.serves')
    await approved(daemon, 'eve.listens')
    const portFile = join(data, 'extensions/data/eve.serves/port')
    const portOf = () => until('a port', () => (existsSync(portFile) ? readFileSync(portFile, 'utf8') : undefined))
    const ask = async (path: string) => {
      const answer = await fetch(url + path, { headers: { authorization: `Bearer ${session}` } })
      return (await answer.json()) as { [name: string]: unknown }
    }

    await t.test('a backend listens where nobody is', async t => {
      await until('it runs', async () => (await ask('/x/eve.listens/listen')).port)
      t.equal(await answers(47_391), false, 'not from the machine')
      const [said] = await shellTurn(client, 'b', ['curl -sS -m 4 http://127.0.0.1:47391/'], { isolated: true })
      t.notMatch(said, WORDS, 'not from a turn')
    })

    await t.test('a program listens on the machine, for its users and programs alone', async t => {
      const port = await portOf()
      await until('it answers', () => (textAt(port) === WORDS ? true : undefined))
      if (uid === 0)
        t.equal(
          execFileSync(
            'setpriv',
            ['--reuid=65534', '--clear-groups', 'curl', '-sS', '-m', '5', `http://127.0.0.1:${port}/`],
            {
              encoding: 'utf8',
            },
          ),
          WORDS,
          'another user of the machine reaches it, which the chapter of the wall says',
        )
      const tried = await ask(`/x/eve.listens/ask/${port}`)
      t.notMatch(JSON.stringify(tried), WORDS, 'the backend of another extension does not')
      const own = ['127.0.0.1', 'localhost', '0.0.0.0', '[::1]', '2130706433'].map(
        host => `for w in x '*'; do curl -sS -m 4 --noproxy "$w" http://${host}:${port}/; done; echo over`,
      )
      t.notMatch(
        (await shellTurn(client, 'own', own, { isolated: true })).join('\n'),
        WORDS,
        'a turn in its own network does not',
      )
      await client.call('POST /settings/patch', { set: { network: 'shared' } })
      t.match(
        (await shellTurn(client, 'shared', [own[0]!], { isolated: true })).join('\n'),
        WORDS,
        'one in the network of the machine does',
      )
      await client.call('POST /settings/patch', { set: { network: 'own' } })
    })

    await t.test('nobody below maintainer writes what runs there', async t => {
      const statusOf = () => client.call('GET /extensions/{id}/processes/{name}', { id: 'eve.serves', name: 'p' })
      const { pid } = await statusOf()
      const { token } = await client.call('POST /system/control/tokens', { label: 'drives', scope: 'drive' })
      const drive = async (path: string, body: object) => {
        const answer = await fetch(url + path, {
          method: 'POST',
          headers: { 'x-sandbox-control': token, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
        return answer.status
      }
      const around = '.sandbox/config/workspace-extensions'
      const path = `${around}/serves/p.cjs`
      const writes = [
        `echo evil > ${path}`,
        `mv ${around}/serves ${around}/away; mkdir ${around}/serves; echo evil > ${path}`,
        `mv ${around} away && mkdir -p ${around}/serves && echo evil > ${path}`,
        'mv .sandbox away && cp -r away .sandbox && ' + `echo evil > ${path}`,
        `ln -sf /dev/null ${path}`,
        `mount -t tmpfs none ${around}`,
        `cp /bin/true ${around}/serves/node; echo evil > ${around}/serves/node`,
      ]
      const prompt = [...writes.map(runs), `write ${path}\n| evil`].join('\n')
      t.equal(await drive('/agent', { conversationId: 'below', prompt }), 200)
      const frames = (await framesOf(client, 'below').all()).map(({ event }) => event)
      t.equal(answersOf(frames).length, writes.length + 1, 'the turn tried all of them')
      const scripts = { test: `${writes.join('; ')}; echo over > over.txt` }
      const content = JSON.stringify({ name: 'p', version: '1.0.0', scripts })
      await client.call('PUT /workspace/file', { path: 'package.json', content })
      t.equal(await drive('/workspace/repos/root/tests', { session: 'tests', dirs: [''] }), 200)
      await until('the tests ran', () => existsSync(join(workspace, 'over.txt')) || undefined)
      t.equal(readFileSync(join(workspace, path), 'utf8'), SERVES)
      t.same(readdirSync(join(workspace, around, 'serves')).sort(), ['intentic-extension.json', 'p.cjs'])
      t.equal((await statusOf()).pid, pid, 'the program runs as it was approved')
    })

    // A program in a terminal outlives its daemon.
    await client.call('POST /extensions/{id}/processes/{name}/stop', { id: 'eve.serves', name: 'p' })
  })
