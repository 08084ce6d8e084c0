import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import { LimitReadings } from '../../../plugins/accounts/limits/readings.js'
import { readWindows } from '../../../plugins/accounts/limits/reading.js'
import { triedKey } from '../../../plugins/accounts/provider-key.js'
import { providerWire } from '../../../plugins/accounts/provider-wire.js'
import { OAuth, OAuthRefusal } from '../../../plugins/accounts/sign-in/oauth.js'
import { marketplaceCalls } from '../../../plugins/extensions/marketplace/calls.js'
import { Registries } from '../../../plugins/extensions/update/registry.js'
import { ForgeClient, ForgeGate } from '../../../plugins/pipelines/forges/client.js'
import { ApiDescriptions } from '../../../plugins/pipelines/forges/api-description.js'
import type { Dialect } from '../../../plugins/pipelines/forges/forge.js'
import { forgejo } from '../../../plugins/pipelines/forges/forgejo.js'
import { dialectOf } from '../../../plugins/pipelines/forges/mapped-repos.js'
import { applyRuns } from '../../../plugins/pipelines/results/apply.js'
import type { ProviderDefinition } from '../../../plugins/providers/contract.js'
import { ciService, type CiPlace, type CiProvider } from '../../../plugins/secrets/ci/service.js'
import { IssuerEndpoints } from '../../../plugins/system/access/issuer-endpoints.js'
import { IssuerKeys } from '../../../plugins/system/access/issuer-keys.js'
import { Refusal } from '../../../sdk/index.js'
import { ListFailure, listServer } from '../../../sdk/node/models/model-list.js'
import type { ServerProtocol } from '../../../sdk/node/models/list-rows.js'
import { askOutside } from '../../../sdk/node/network/outbound.js'
import { tookLess } from '../../support/in-time.js'
import { ENDLESS, faultsOf, hostileServer, someOf, spoiled, WIRES } from './hostile-answers.js'

t.setTimeout(300_000)

/** A function that reads answers of one kind of server, and an answer that it understands. */
interface Reader {
  readonly right: (url: string) => unknown
  readonly read: (url: string, signal: AbortSignal) => Promise<unknown>
}

const TIME = '2026-01-31T12:00:00Z'
const WORKFLOW_RUN = {
  ...{ id: 1, status: 'completed', conclusion: 'success', head_branch: 'main', head_sha: 'a'.repeat(40) },
  ...{ html_url: 'https://forge.example/1', created_at: TIME, run_started_at: TIME, updated_at: TIME },
  ...{ run_number: 1, display_title: 'x', path: '.ci/x.yml', event: 'push' },
  actor: { login: 'ada', avatar_url: 'https://forge.example/a.png' },
}
const PIPELINE = {
  ...{ id: 1, status: 'success', ref: 'main', sha: 'a'.repeat(40), web_url: 'https://forge.example/1' },
  ...{ created_at: TIME, finished_at: TIME, duration: 1, source: 'push', user: { name: 'ada' } },
}
const ACTION_RUN = {
  ...{ id: 1, status: 'success', prettyref: 'main', commit_sha: 'a'.repeat(40), html_url: 'https://forge.example/1' },
  ...{ created: TIME, started: TIME, stopped: TIME, trigger_user: { login: 'ada' }, trigger_event: 'push' },
}
const JOB = {
  ...{ id: 1, name: 'build', status: 'completed', conclusion: 'failure', stage: 'x', needs: ['a'] },
  ...{
    started_at: TIME,
    completed_at: TIME,
    finished_at: TIME,
    html_url: 'https://f.example/1',
    web_url: 'https://f.example/1',
  },
}
const RIGHT_RUN = { github: WORKFLOW_RUN, gitlab: PIPELINE, forgejo: ACTION_RUN, gitea: WORKFLOW_RUN }

const forge = (
  host: keyof typeof RIGHT_RUN,
  read: (dialect: Dialect, client: ForgeClient) => Promise<unknown>,
  right: unknown,
): Reader => ({
  right: () => right,
  read: (url, signal) => {
    // What a version can do is asked anew each time.
    const versioned = host === 'forgejo' || host === 'gitea'
    const dialect = versioned ? forgejo(host, new ApiDescriptions()) : dialectOf(host)!
    const reach = { near: true, listeners: [] }
    return read(
      dialect,
      new ForgeClient({ dialect, site: new URL(url), token: 't0ken', reach, gate: new ForgeGate(), signal }),
    )
  },
})

/** The runs as they are stored and shown. */
const applied = async (dialect: Dialect, client: ForgeClient): Promise<unknown> => {
  const runs = await dialect.runs(client, 'a/b', 1)
  const results = {
    repo: 'root',
    host: 'github',
    project: 'a/b',
    site: '',
    looked: true,
    runs: [],
    branches: {},
    announced: [],
    pending: [],
  }
  applyRuns(results as never, runs, Date.now())
  return results
}

const FORGES = Object.fromEntries(
  (['github', 'gitlab', 'forgejo', 'gitea'] as const).flatMap(host => [
    [
      `the runs of ${host}`,
      forge(host, applied, host === 'gitlab' ? [PIPELINE] : { workflow_runs: [RIGHT_RUN[host]] }),
    ],
    [`a run of ${host}`, forge(host, (dialect, client) => dialect.run(client, 'a/b', 1), RIGHT_RUN[host])],
    [
      `the jobs of ${host}`,
      forge(host, (dialect, client) => dialect.jobs(client, 'a/b', 1), host === 'github' ? { jobs: [JOB] } : [JOB]),
    ],
    [
      `the webhooks of ${host}`,
      forge(
        host,
        async (dialect, client) => [
          // Their addresses are compared, and not shown.
          (await dialect.hooks(client, 'a/b')).map(({ id, url }) => [id, typeof url]),
          await dialect.putHook(client, 'a/b', { url: 'https://a.example/', secret: 's' }).catch(known),
        ],
        [{ id: 1, url: 'https://a.example/', config: { url: 'https://a.example/' } }],
      ),
    ],
    [
      `the powers of ${host}`,
      forge(host, (dialect, client) => dialect.powers(client), {
        paths: { '/repos/{a}/{b}/actions/runs': { get: {} } },
      }),
    ],
  ]),
)

/** A public key that values can be encrypted for. */
const KEY = generateKeyPairSync('x25519')
  .publicKey.export({ format: 'der', type: 'spki' })
  .subarray(-32)
  .toString('base64')
const ROW = { name: 'KEY', key: 'KEY', value: 'v', updated_at: TIME, created_at: TIME, environment_scope: '*' }
const SECRETS = Object.fromEntries(
  (['github', 'gitlab', 'forgejo', 'gitea'] as const).map((provider: CiProvider): [string, Reader] => [
    `the variables of ${provider}`,
    {
      right: () => (provider === 'github' ? { secrets: [ROW], key: KEY, key_id: 'k' } : [ROW]),
      read: async (url, signal) => {
        const reach = { near: true, listeners: [] }
        const service = ciService({
          provider,
          api: url,
          token: 't0ken',
          project: 'a/b',
          reach,
          signal,
        } satisfies CiPlace)
        return [(await service.names()).size, await service.put('KEY', 'value').catch(known)]
      },
    },
  ]),
)

const wire = providerWire(async () => [])
const definitionAt = (url: string) =>
  ({
    ...{ id: 'acme', label: 'ACME', serving: 'native', protocol: 'openai', baseUrl: url },
    auth: {
      flows: ['device', 'code', 'key'],
      ...{ tokenUrl: url, deviceUrl: url, revokeUrl: url, clientId: 'c', header: 'bearer' },
      identity: { email: 'id_token.email', organization: 'organization.name' },
    },
    models: {},
    limits: { from: 'get', url, windows: [{ kind: 'week', percent: 'used.percent', resetsAt: 'used.resets' }] },
  }) as unknown as ProviderDefinition

const TOKENS = {
  ...{ access_token: 'at', refresh_token: 'rt', expires_in: 3600, scope: 's', organization: { name: 'org' } },
  id_token: `h.${Buffer.from('{"email":"ada@example.org"}').toString('base64url')}.s`,
  ...{ device_code: 'd', user_code: 'u', verification_uri: 'https://a.example/', interval: 5, expires_in_: 1 },
}

/** What a provider grants, but for the credential, which is sent back to it alone. */
const shown = ({
  credential: { value: _, refresh: __, ...credential },
  ...granted
}: Awaited<ReturnType<OAuth['redeem']>>) => ({
  ...granted,
  ...credential,
})

const ACCOUNTS: { readonly [what: string]: Reader } = {
  'what a provider grants': {
    right: () => TOKENS,
    read: async url => {
      const oauth = new OAuth(wire)
      const definition = definitionAt(url)
      const granted = await oauth.redeem(definition, { code: 'c', verifier: 'v' })
      const { value: _, refresh: __, ...renewed } = await oauth.renew(definition, 'rt')
      return [shown(granted), renewed, await oauth.revoke(definition, granted.credential)]
    },
  },
  'how a device signs in': {
    right: () => TOKENS,
    read: async url => {
      const {
        intervalMs,
        lastsMs,
        code: _,
        deviceCode: __,
        url: page,
      } = await new OAuth(wire).device(definitionAt(url))
      if (!(intervalMs >= 1_000)) throw new Error(`the provider is asked again after ${intervalMs} ms`)
      return { intervalMs, lasts: lastsMs === Infinity ? 0 : lastsMs, page: typeof page }
    },
  },
  'a key that is tried': { right: () => ({}), read: url => triedKey(wire, definitionAt(url), 'sk-1') },
  'how full limits are': {
    right: () => ({ used: { percent: 5, resets: TIME } }),
    read: async url => {
      const answer = await wire({ url })
      const windows = readWindows(definitionAt(url).limits!, answer.value, Date.now())
      for (const { resetsAt } of windows) if (resetsAt !== undefined) new Date(resetsAt).toISOString()
      return windows
    },
  },
}

const MODELS = Object.fromEntries(
  (['openai', 'anthropic', 'ollama'] as const).map((protocol: ServerProtocol): [string, Reader] => [
    `the models of a server that speaks as ${protocol}`,
    {
      right: () => ({
        data: [
          {
            id: 'm',
            context_length: 1,
            display_name: 'M',
            description: 'd',
            architecture: { output_modalities: ['text'] },
          },
        ],
        models: [{ name: 'm', model: 'm', details: { family: 'f', families: ['f'] } }],
        ...{ has_more: false, last_id: 'm', capabilities: ['tools'], model_info: { 'x.context_length': 1 } },
      }),
      read: (url, signal) => listServer({ protocol, baseUrl: url, headers: {}, secrets: ['sk'] }, signal, 5_000),
    },
  ]),
)

const LISTED = {
  ...{ id: 'acme.notes', version: '1.0.0', description: 'd', category: 'c', homepage: 'https://a.example/' },
  source: { url: 'https://a.example/r.git', ref: 'a'.repeat(40) },
}
const PLUGIN = {
  ...{ name: 'p', description: 'd', version: '1', category: 'c', homepage: 'https://a.example/' },
  source: { source: 'url', url: 'https://a.example/p.git', sha: 'a'.repeat(40), path: 'p' },
}

/** A list as `POST /capabilities/marketplace` shows it. */
const listed = (right: object): Reader => ({
  right: () => right,
  read: async (url, signal) => {
    const place = { workspace: '/nowhere' }
    const calls = marketplaceCalls({ host: { signal, place }, catalog: { loaded: new Map() } } as never)
    return calls['POST /capabilities/marketplace']({ url: `${url}/list.json` }, {} as never)
  },
})

const ADVISORY = { id: 'acme.notes', refs: 'all', reason: 'r', at: TIME }
const OTHERS: { readonly [what: string]: Reader } = {
  'the marketplace, of extensions': listed({ name: 'r', extensions: [LISTED] }),
  'the marketplace, of plugins': listed({ name: 'r', plugins: [PLUGIN, { name: 'q', source: './q' }] }),
  'a registry of extensions': {
    right: () => ({
      name: 'r',
      extensions: [LISTED],
      advisories: [ADVISORY],
    }),
    read: async (url, signal) => {
      const { extensions } = await new Registries({ signal, place: { workspace: '/nowhere' } } as never).read(
        `${url}/r.json`,
      )
      return extensions.length
    },
  },
  'the keys of an issuer': {
    right: url => ({ issuer: url, jwks_uri: `${url}/keys`, keys: [{ kid: 'a', kty: 'RSA', n: 'AQ', e: 'AQAB' }] }),
    read: async (url, signal) => (await new IssuerKeys(url, document(signal), Date.now).current()).keys.length,
  },
  'the pages of an issuer': {
    right: url => ({ issuer: url, authorization_endpoint: `${url}/auth`, token_endpoint: `${url}/token` }),
    read: async (url, signal) => {
      const { authorize, token } = await new IssuerEndpoints(document(signal), Date.now).of(url)
      return { authorizeUrl: authorize ?? '', tokenUrl: token ?? '' }
    },
  },
}

const document = (signal: AbortSignal) => async (url: string, near: boolean) => {
  const reach = { near, listeners: [] }
  return (await askOutside({ url, reach, redirects: 0, timeoutMs: 10_000, maxBytes: 1 << 20, signal })).body
}

const READERS: { readonly [what: string]: Reader } = { ...FORGES, ...SECRETS, ...ACCOUNTS, ...MODELS, ...OTHERS }

/** A reader for each way to ask a server. */
const CARRIERS = Object.entries(READERS).filter(([what]) =>
  [
    /^a run of gitlab|^the variables of gitlab|^what a provider|^the models .* openai/,
    /^a registry|^the keys|^the marketplace, of plugins/,
  ].some(carrier => carrier.test(what)),
)

/** The message of a failure that has words for a person; any other is thrown on. */
const known = (error: unknown): string => {
  if (error instanceof Refusal || error instanceof ListFailure || error instanceof OAuthRefusal) {
    // A refused address is quoted in the message.
    return error.message.length < 1_000 ? error.message : `${error.message.length} characters`
  }
  throw error
}

/** What is wrong with how a reader takes an answer; nothing: it reads it, or says in words why not. */
const wrongWith = async ({ read }: Reader, url: string, signal: AbortSignal): Promise<string[]> => {
  try {
    return faultsOf(await read(url, signal).catch(known))
  } catch (error) {
    return [String((error as Error).stack).slice(0, 500)]
  }
}

t.test('each reader of answers understands the right one', async t => {
  const server = await hostileServer(t)
  const { signal } = new AbortController()
  for (const [what, reader] of Object.entries(READERS)) {
    server.json(JSON.stringify(reader.right(server.url)))
    await t.resolves(reader.read(server.url, signal), what)
  }
})

t.test('an answer whose JSON is spoiled anywhere is read, or refused in words', async t => {
  const server = await hostileServer(t)
  const { signal } = new AbortController()
  for (const [what, reader] of Object.entries(READERS)) {
    const all = [...spoiled(reader.right(server.url))]
    const wrong: string[] = []
    const slow: string[] = []
    const timed = async (text: string) => {
      const start = performance.now()
      for (const fault of await wrongWith(reader, server.url, signal)) wrong.push(`${text.slice(0, 200)}: ${fault}`)
      return performance.now() - start
    }
    for (const text of someOf(all, 50)) {
      server.json(text)
      // A busy machine is slow once, an answer that takes long each time.
      if ((await timed(text)) < 3_000) continue
      const again = await timed(text)
      if (!tookLess(again, 3_000)) slow.push(`${Math.round(again)} ms: ${text.slice(0, 200)}`)
    }
    t.same(wrong.slice(0, 5), [], what)
    t.same(slow, [], what)
  }
})

t.test('an answer that is wrong on the wire is refused in words, in bounded time and memory', async t => {
  const server = await hostileServer(t)
  const { signal } = new AbortController()
  t.equal(CARRIERS.length, 7)
  for (const [way, answer] of Object.entries(WIRES)) {
    server.answer = answer
    const start = performance.now()
    const wrong = (
      await Promise.all(
        CARRIERS.map(async ([what, reader]) =>
          (await wrongWith(reader, server.url, signal)).map(fault => `${what}: ${fault}`),
        ),
      )
    ).flat()
    t.same(wrong.slice(0, 5), [], way)
    t.ok(tookLess(performance.now() - start, 40_000), `${way}: ${Math.round(performance.now() - start)} ms`)
  }
  t.ok(process.memoryUsage().rss < 1_500 * 1024 * 1024, `${Math.round(process.memoryUsage().rss / 1024 / 1024)} MiB`)
})

t.test('an answer that does not end by itself ends', async t => {
  const { signal } = new AbortController()
  const start = performance.now()
  const wrong = await Promise.all(
    Object.entries(ENDLESS).map(async ([way, answer]) => {
      const server = await hostileServer(t)
      server.answer = answer
      const all = CARRIERS.map(async ([what, reader]) =>
        (await wrongWith(reader, server.url, signal)).map(fault => `${way}: ${what}: ${fault}`),
      )
      return (await Promise.all(all)).flat()
    }),
  )
  t.same(wrong.flat().slice(0, 5), [])
  t.ok(tookLess(performance.now() - start, 60_000), `${Math.round(performance.now() - start)} ms`)
})

t.test('a page of more runs than was asked for takes no time', async t => {
  const server = await hostileServer(t)
  const { signal } = new AbortController()
  const runs = `{"id":1,"status":"success"},`.repeat(500_000)
  for (const host of ['github', 'gitlab', 'forgejo', 'gitea'] as const) {
    server.json(host === 'gitlab' ? `[${runs}{}]` : `{"workflow_runs":[${runs}{}]}`)
    const start = performance.now()
    await READERS[`the runs of ${host}`]!.read(server.url, signal).catch(known)
    t.ok(tookLess(performance.now() - start, 4_000), `${host}: ${Math.round(performance.now() - start)} ms`)
  }
})

t.test('a provider that asks to wait for ever is asked again within the hour', async t => {
  const server = await hostileServer(t)
  server.answer = socket => socket.end('HTTP/1.1 200 OK\r\nretry-after: 1e15\r\ncontent-length: 2\r\n\r\n{}')
  const kept = new Map<string, unknown>()
  const readings = new LimitReadings({
    store: {
      set: async (key: string, value: unknown) => void kept.set(key, value),
      delete: async (key: string) => void kept.delete(key),
      all: async () => [],
    } as never,
    ask: wire,
    definition: async () => definitionAt(server.url),
    headers: async () => ({}),
    changed: () => {},
  })
  const account = { provider: 'acme', id: 'a' }
  await readings.freshen([account], { force: true, waitMs: 10_000 })
  t.equal(server.asked, 1)
  const real = Date.now
  t.teardown(() => void (Date.now = real))
  Date.now = () => real() + 3_600_001
  await readings.freshen([account], { force: true, waitMs: 10_000 })
  t.equal(server.asked, 2)
})
