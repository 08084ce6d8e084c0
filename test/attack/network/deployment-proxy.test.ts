import { createServer, request as plainRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import type { Client } from '../../../sdk/client.js'
import { folderOf, inGit } from '../../support/daemon.js'
import { repoAt } from '../../plugins/git/support.js'
import { companyNetwork, type ProxyForm } from '../../support/servers/deployment-proxy.js'
import { bareCopy, gitServer } from '../../support/servers/git-server.js'
import { newSubscription } from '../../support/servers/push-service.js'
import { runTurn } from '../../support/turns.js'
import { answersOf, runs, walled } from '../support.js'
import { USERS } from '../users.js'
import { daemonOf } from './user-daemon.js'

const LOGIN = 'ada:a pass@word/+&'
const WORDS = 'words from behind the proxy'
const FORMS: readonly (readonly [name: string, form: ProxyForm])[] = [
  ['a proxy', { secure: false }],
  ['a proxy with a password', { secure: false, login: LOGIN }],
  ['a proxy over TLS', { secure: true }],
  ['a proxy over TLS with a password', { secure: true, login: LOGIN }],
]

/** One kind of request of the daemon; `https` alone where the call takes no http address of another machine. */
interface Kind {
  readonly host: string
  readonly schemes: readonly ('http' | 'https')[]
  ask(client: Client, base: string, scheme: string): Promise<string>
  /** What it shows when the request came through. */
  readonly shows?: RegExp
}

const said = async (asking: Promise<unknown>): Promise<string> => {
  try {
    return JSON.stringify(await asking)
  } catch (error) {
    return String((error as Error).message)
  }
}

const both = ['http', 'https'] as const
const KINDS: readonly Kind[] = [
  {
    host: 'models',
    schemes: both,
    shows: /"ready"[\s\S]*words from behind the proxy/,
    ask: async (client, base, scheme) => {
      const id = `m-${scheme}`
      const row = await client.call('POST /endpoints', {
        id,
        kind: 'server',
        protocol: 'openai',
        baseUrl: `${base}/v1`,
      })
      const turn = { agent: `endpoint/${id}`, model: 'm' }
      return JSON.stringify([row, await runTurn(client, id, 'hello', turn)])
    },
  },
  {
    host: 'page',
    schemes: both,
    shows: new RegExp(WORDS),
    ask: async (client, base, scheme) =>
      JSON.stringify(answersOf(await runTurn(client, `page-${scheme}`, `fetch ${base}/page`, { isolated: true }))),
  },
  {
    host: 'shell',
    schemes: both,
    shows: new RegExp(WORDS),
    ask: async (client, base, scheme) =>
      JSON.stringify(
        answersOf(await runTurn(client, `sh-${scheme}`, runs(`curl -sS ${base}/shell`), { isolated: true })),
      ),
  },
  {
    host: 'git',
    schemes: both,
    shows: /^cloned fetched pushed$/,
    ask: async (client, base, scheme) => {
      const name = `clone-${scheme}`
      await client.call('POST /workspace/repos', { name, cloneUrl: `${base}/r.git` })
      const fetched = await client.call('POST /git/{repo}/fetch', { repo: name })
      if (!('ok' in fetched) || !fetched.ok) return JSON.stringify(fetched)
      await client.call('POST /git/{repo}/branches', { repo: name, name: `b-${scheme}` })
      const pushed = await client.call('POST /git/{repo}/push', { repo: name })
      return pushed.ok ? 'cloned fetched pushed' : JSON.stringify(pushed)
    },
  },
  {
    host: 'extension',
    schemes: ['https'],
    ask: (client, base) =>
      said(client.call('POST /extensions/install/preview', { url: `${base}/r.git`, ref: 'a'.repeat(40) })),
  },
  {
    host: 'tools',
    schemes: both,
    ask: async (client, base, scheme) => {
      const id = `t-${scheme}`
      const connecting = await client.call('POST /capabilities', { id, kind: 'mcp', config: { url: `${base}/mcp` } })
      for await (const _ of connecting) continue
      return said(client.call('GET /capabilities/{id}/tools', { id, refresh: true }))
    },
  },
  {
    host: 'push',
    schemes: ['https'],
    shows: /"delivered":1/,
    ask: async (client, base) => {
      await client.call('POST /push/subscribe', newSubscription(`${base}/device`).channel)
      return JSON.stringify(await client.call('POST /push/test'))
    },
  },
]

const piece = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`

/** The servers of the company; git is behind them. */
const companyServers = async (t: Test, seen: string[]) => {
  const folder = folderOf(t)
  chmodSync(folder, 0o777)
  const git = await gitServer(t, folder)
  repoAt(join(folder, 'r'), { 'a.txt': 'a\n' })
  bareCopy(join(folder, 'r'), join(folder, 'r.git'))
  execFileSync('chmod', ['-R', 'a+rwX', folder])
  inGit(join(folder, 'r.git'), 'config', 'core.sharedRepository', 'world')
  return async (asked: IncomingMessage, answer: ServerResponse): Promise<void> => {
    const { method = 'GET', url = '/', headers } = asked
    seen.push(`http${'encrypted' in asked.socket ? 's' : ''}://${headers.host}${url}`)
    if (url.includes('.git')) {
      const on = plainRequest({ host: '127.0.0.1', port: git.port, method, path: url, headers }, came => {
        answer.writeHead(came.statusCode ?? 502, came.headers)
        came.pipe(answer)
      })
      return void asked.pipe(on)
    }
    await text(asked)
    if (url === '/v1/models') return void answer.end(JSON.stringify({ object: 'list', data: [{ id: 'm' }] }))
    if (url === '/v1/chat/completions')
      return void answer
        .setHeader('content-type', 'text/event-stream')
        .end(`${piece({ content: WORDS })}${piece({}, 'stop')}data: [DONE]\n\n`)
    if (url === '/device') return void answer.writeHead(201).end()
    if (url === '/mcp') return void answer.writeHead(500).end('no tools')
    answer.setHeader('content-type', 'text/plain').end(WORDS)
  }
}

for (const [user, uid] of USERS)
  for (const [name, form] of FORMS) {
    // An ordinary user has the hardest form; the superuser's daemon differs in nothing that the others show.
    if (USERS.length > 1 && (uid === process.getuid?.()) === (form.login !== undefined)) continue
    t.test(`${user}: every kind of request goes through ${name}`, walled(), async t => {
      const seen: string[] = []
      const network = await companyNetwork(t, form, await companyServers(t, seen))
      const trusted = join(folderOf(t), 'authority.pem')
      writeFileSync(trusted, network.authority.certificate)
      const daemon = await daemonOf(
        t,
        uid,
        { 'README.md': '# work\n' },
        {
          HTTP_PROXY: network.address,
          HTTPS_PROXY: network.address,
          NO_PROXY: 'localhost',
          SSL_CERT_FILE: form.login === undefined ? trusted : '',
          NODE_EXTRA_CA_CERTS: form.login === undefined ? '' : trusted,
          GIT_SSL_CAINFO: '',
        },
      )
      for (const kind of KINDS)
        for (const scheme of kind.schemes) {
          const base = `${scheme}://${kind.host}.corp.example`
          const shown = await said(kind.ask(daemon.client, base, scheme).then(found => found))
          t.ok(
            seen.some(each => each.startsWith(`${base}/`)),
            `${kind.host} over ${scheme}: ${shown.slice(0, 1500)}`,
          )
          if (kind.shows) t.match(JSON.parse(shown), kind.shows, `${kind.host} over ${scheme}`)
        }
      t.strictSame(
        network.asked.filter(({ allowed }) => !allowed),
        [],
        'the proxy is asked with its password, and for nothing else',
      )
      t.notMatch(daemon.stderr(), /a%20pass|a pass@/)

      await t.test('no request for a conversation reaches what is near through the proxy', async t => {
        const before = network.asked.length
        const canary = createServer((_, answer) => void answer.end('canary'))
        await new Promise<void>(done => canary.listen(0, '127.0.0.1', done))
        t.teardown(() => canary.close())
        const own = new URL(daemon.url).port
        const targets = [
          `http://127.0.0.1:${own}/health`,
          `http://169.254.169.254/`,
          'http://metadata.google.internal/',
          'http://10.1.2.3/',
          'http://[fd00::1]/',
          'http://intranet/',
          'http://printer.local/',
          'http://vault.internal/',
        ]
        for (const isolated of [false, true]) {
          const script = targets.map(each => `fetch ${each}\n${runs(`curl -sS --max-time 20 ${each}`)}`).join('\n')
          const answers = answersOf(await runTurn(daemon.client, `near-${isolated}`, script, { isolated }))
          t.equal(answers.length, targets.length * 2)
          t.notMatch(answers.map(({ text }) => text).join('\n'), /canary|"ok":true|the proxy says no/)
        }
        const heard = network.asked.slice(before).filter(({ target }) => !target.includes('corp.example'))
        t.strictSame(heard, [], 'no request reaches the proxy')
      })
    })
  }

t.test('a server that a proxy refuses is named with the proxy, its variable and what to do', walled(), async t => {
  const network = await companyNetwork(t, { secure: false, login: LOGIN }, (_, answer) => void answer.end('x'))
  const wrong = network.address.replace('ada', 'eve')
  const daemon = await daemonOf(t, USERS[0]![1], { 'README.md': '# work\n' }, { HTTP_PROXY: wrong, HTTPS_PROXY: wrong })
  const at = (base: string) =>
    said(daemon.client.call('POST /endpoints', { id: 'm', kind: 'server', protocol: 'openai', baseUrl: `${base}/v1` }))
  for (const scheme of both) {
    const shown = await at(`${scheme}://models.corp.example`)
    t.match(shown, new RegExp(`the proxy 127\\.0\\.0\\.1:\\d+ of ${scheme.toUpperCase()}_PROXY refuses the name`))
    t.notMatch(shown, /a(?:%20| )pass|eve/)
  }
})

t.test('git that a proxy does not let through is said in a sentence that names the proxy', walled(), async t => {
  const refusing = createServer((_, answer) => void answer.writeHead(403).end())
  refusing.on('connect', (_, socket) => void socket.end('HTTP/1.1 403 Not here\r\ncontent-length: 0\r\n\r\n'))
  refusing.listen(0, '127.0.0.1')
  await once(refusing, 'listening')
  t.teardown(() => {
    refusing.close()
    refusing.closeAllConnections()
  })
  const { port } = refusing.address() as AddressInfo
  const asking = await companyNetwork(t, { secure: false, login: LOGIN }, (_, answer) => void answer.end('x'))
  const cases = [
    [`http://127.0.0.1:${port}`, `does not connect to git\\.corp\\.example: it answers 403`],
    [asking.address.replace('ada', 'eve'), 'refuses the name and password in its address'],
    ['http://127.0.0.1:1', 'cannot be reached'],
  ] as const
  for (const [proxy, why] of cases) {
    const daemon = await daemonOf(t, USERS[0]![1], { 'README.md': '# work\n' }, { HTTPS_PROXY: proxy })
    const remote = { repo: 'root', name: 'origin', url: 'https://git.corp.example/r.git' }
    await daemon.client.call('POST /git/{repo}/remotes', remote)
    for (const call of ['POST /git/{repo}/fetch', 'POST /git/{repo}/push'] as const) {
      const result = await daemon.client.call(call, { repo: 'root' })
      t.match(result, { ok: false, code: 'unreachable' }, call)
      t.match(
        JSON.stringify(result),
        new RegExp(`"reason":"the proxy 127\\.0\\.0\\.1:\\d+ of HTTPS_PROXY ${why}"`),
        call,
      )
      t.notMatch(JSON.stringify(result), /eve|a(?:%20| )pass/)
    }
  }
})
