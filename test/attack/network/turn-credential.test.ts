import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createClient, type Client } from '../../../sdk/client.js'
import { spawnDaemon, type RunningDaemon } from '../../support/daemon.js'
import { joined } from '../../support/joined.js'
import { exactly } from '../../support/lists.js'
import { framesOf } from '../../support/turns.js'
import { answersOf, runs, walled } from '../support.js'
import { USERS } from '../users.js'
import { daemonOf } from './user-daemon.js'

const CLOSED = { 'approvals/x/approve': 'POST', 'vpn/x': 'GET', 'disks/probe': 'POST', secrets: 'GET', agent: 'POST' }
const FORM = /^sbt_[\w-]{22}\.[\w-]{43}$/
/** A post that is filed, and one of another conversation. */
const post = (more: object = {}) =>
  JSON.stringify({ kind: 'post', post: { platform: 'webhook', target: 'http://127.0.0.1:9', content: 'Hi.' }, ...more })
const need = (conversationId: string) =>
  JSON.stringify({ kind: 'decision', title: 'May I?', why: 'to go on', conversationId })

/** The command that asks the daemon from inside a turn, and prints the status and the answer in one line. */
const asks = (method: string, path: string, body = '', header = '-H "x-sandbox-turn: $SANDBOX_TURN_TOKEN"'): string =>
  `curl -m 15 -s -o out -w "%{http_code} " --path-as-is -X ${method} ${header} -H content-type:application/json `
  + `${body && `-d '${body}'`} "$SANDBOX_DAEMON${path}"; tr -d '\\n' < out | cut -c1-400; rm -f out`

/** A turn that runs these in one command and then waits; returns what they printed, and the credential that it has. */
const waiting = async (client: Client, conversationId: string, workspace: string, commands: readonly string[]) => {
  const keeps = `printf %s "$SANDBOX_TURN_TOKEN" > held-${conversationId}`
  const prompt = [runs([keeps, ...commands].join('; ')), 'ask Go on?'].join('\n')
  const { run } = await client.call('POST /agent', { conversationId, prompt })
  const watched = framesOf(client, conversationId, { run })
  const card = await watched.until(({ kind }) => kind === 'question')
  const [printed = ''] = answersOf(watched.seen.map(({ event }) => event)).map(({ text }) => text)
  const token = readFileSync(join(workspace, `held-${conversationId}`), 'utf8')
  const end = async () => {
    await client.call('POST /agent/stop', { conversationId })
    await watched.all()
  }
  return { run, card, answers: printed.split('\n'), token, end, watched }
}

const direct = async ({ url }: RunningDaemon, token: string, method = 'POST', path = '/approvals', body = post()) => {
  const answer = await fetch(url + path, {
    method,
    headers: { 'x-sandbox-turn': token, 'content-type': 'application/json' },
    ...(method !== 'GET' && { body }),
  })
  return { ...((await answer.json()) as { message?: string; id?: string }), status: answer.status }
}

/** The files below a folder that hold a text. */
const holding = (folder: string, text: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap(entry => {
    const path = join(entry.parentPath, entry.name)
    return entry.isFile() && statSync(path).size < 8_000_000 && readFileSync(path, 'latin1').includes(text)
      ? [path]
      : []
  })

/** The arguments of every process of the machine that hold a text. */
const inArguments = (text: string): string[] =>
  readdirSync('/proc').flatMap(pid => {
    if (!/^\d+$/.test(pid)) return []
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(text) ? [pid] : []
    } catch {
      return []
    }
  })

const begins = (t: Test, answers: readonly string[], expected: readonly (readonly [string, RegExp])[]) => {
  t.equal(answers.length, expected.length)
  for (const [at, [what, pattern]] of expected.entries()) t.match(answers[at], pattern, what)
}

for (const [user, uid] of USERS)
  t.test(
    `${user}: commands of a turn propose, ask and read with its credential, and do nothing else`,
    walled(),
    async t => {
      const daemon = await daemonOf(t, uid, { 'README.md': '# work\n' })
      const { client, workspace } = daemon
      const other = await waiting(client, 'other', workspace, [])
      t.match(other.token, FORM)
      const own = await waiting(client, 'mine', workspace, [
        asks('POST', '/approvals', post()),
        asks('POST', '/approvals', post({ conversationId: 'other' })),
        asks('POST', '/needs', need('mine')),
        asks('POST', '/needs', need('other')),
        asks('GET', '/agents'),
        asks('GET', '/vpn'),
        asks('POST', '/vpn/x/connect', '{}'),
        asks('POST', '/disks/x/mount', '{}'),
        asks('GET', '/capabilities/x/otp'),
        ...Object.entries(CLOSED).map(([path, method]) => asks(method, `/${path}`, method === 'POST' ? '{}' : '')),
        // Open routes judge no credential, so they are not reached from here at all.
        asks('GET', '/health'),
        asks('POST', '/system/session', '{"login":"x"}'),
        asks('POST', '/approvals/../system/session', '{"login":"x"}'),
        asks('POST', '//system/session', '{"login":"x"}'),
        asks('POST', '/%61pprovals/x/approve', '{}'),
        asks('POST', '/approvals', post(), ''),
        asks('POST', '/approvals', post(), '-H "authorization: Bearer $SANDBOX_TURN_TOKEN"'),
        asks('POST', '/approvals', post(), `-H "x-sandbox-turn: $(cat held-other)"`),
        asks(
          'POST',
          '/approvals',
          post(),
          `-H "x-sandbox-turn: $SANDBOX_TURN_TOKEN" -H "x-sandbox-turn: $(cat held-other)"`,
        ),
        'echo "it is $SANDBOX_TURN_TOKEN"',
        'printf %s "$SANDBOX_TURN_TOKEN" | base64 -w0',
      ])
      begins(t, own.answers, [
        ['proposes', /^200 .*"proposedBy":"conversation:mine"/],
        ['not for another', /^404 .*there is no conversation \\"other\\"/],
        ['asks', /^200 .*"raisedBy":"conversation:mine"/],
        ['not for another', /^404 /],
        ['reads', /^200 .*"id":"mine"/],
        ['lists tunnels', /^200 .*"links":\[\]/],
        ['dials', /^404 .*no tunnel/],
        ['mounts', /^404 .*no share/],
        ['asks for codes', /^404 /],
        ...Object.keys(CLOSED).map(path => [path, /^403 .*POST \/approvals/] as const),
        ...['health', 'sign-in', 'dots', 'slashes', 'escapes'].map(what => [what, /^403 /] as const),
        ...['none', 'as bearer', "another turn's", 'two'].map(what => [what, /^401 /] as const),
        ['masked', /^it is (?!sbt_)/],
        ['masked, encoded', /^(?!c2J0)/],
      ])
      const { approvals } = await client.call('GET /approvals')
      t.match(approvals, exactly({ proposedBy: 'conversation:mine', conversationId: 'mine', status: 'proposed' }))

      await t.test('whoever has it says yes to nothing', async t => {
        const [{ id, digest } = { id: '', digest: '' }] = approvals
        const path = `/approvals/${id}`
        for (const [method, target] of [
          ['POST', `${path}/approve`],
          ['POST', `${path}/recall`],
          ['POST', `${path}/decline`],
          ['DELETE', path],
          ['POST', '/drafts'],
          ['POST', '/agent'],
          ['POST', '/secrets/reveal'],
          ['POST', '/system/ws-ticket'],
          ['GET', '/secrets'],
        ] as const) {
          const { status, message } = await direct(daemon, own.token, method, target, JSON.stringify({ digest }))
          t.equal(status, 403, `${method} ${target}`)
          t.match(message, 'propose it at POST /approvals')
        }
        t.match(await client.call('GET /approvals'), { approvals: exactly({ id, status: 'proposed', digest }) })
        // It is its own there too, and replaces no item of another conversation.
        t.match(await direct(daemon, own.token, 'POST', '/approvals', post({ conversationId: 'other' })), {
          status: 404,
        })
        t.match(await direct(daemon, other.token, 'POST', '/approvals', post({ id })), { status: 403 })
      })

      await t.test('it is in no frame, log, file of the daemon and list of arguments', async t => {
        t.notOk(JSON.stringify(own.watched.seen).includes(own.token))
        t.same(holding(daemon.data, own.token.slice(27)), [])
        t.notOk(daemon.stderr().includes(own.token))
        t.same(inArguments(own.token.slice(27)), [])
      })

      await t.test('it ends with its turn, and one that goes on after a kill has another', async t => {
        await own.end()
        t.match(await direct(daemon, own.token), { status: 401, message: 'has ended' })
        t.equal((await direct(daemon, other.token)).status, 200)
        await daemon.kill9()
        const next = await spawnDaemon(t, { ...daemon, ...(uid !== process.getuid?.() && { user: uid }) })
        t.match(await direct(next, other.token), { status: 401 })
        const { requestId } = other.card
        const again = framesOf(next.client, 'other', { run: other.run })
        await again.until(({ kind }) => kind === 'question')
        await next.client.call('POST /agent/reply', {
          kind: 'question',
          requestId,
          answers: { 'Go on?': ['yes'] },
        })
        await again.all()
        const resumed = await waiting(next.client, 'other', workspace, [asks('POST', '/approvals', post())])
        t.match(resumed.token, FORM)
        t.not(resumed.token, other.token)
        t.match(resumed.answers, exactly(/^200 /))
        await resumed.end()
      })
    },
  )

t.test('persona, policy and who speaks narrow what a turn reads and asks of the network', walled(), async t => {
  const daemon = await daemonOf(t, USERS[0]![1], { 'README.md': '# work\n' })
  const { client } = daemon
  const commands = [asks('GET', '/agents'), asks('GET', '/vpn')]
  const answers = async (conversationId: string, by: Client, input: object) => {
    const prompt = commands.map(runs).join('\n')
    const { run } = await by.call('POST /agent', { conversationId, prompt, ...input })
    const frames = (await framesOf(client, conversationId, { run }).all()).map(({ event }) => event)
    return answersOf(frames).map(({ text = '' }) => text.slice(0, 3))
  }
  t.same(await answers('mine', client, {}), ['200', '200'])
  await client.call('POST /personas', { id: 'narrow', capabilities: [], powers: { sandbox: false } })
  t.same(await answers('narrow', client, { actsAs: 'narrow' }), ['403', '403'])
  const { token } = await client.call('POST /system/control/tokens', { label: 'ci', scope: 'land' })
  const program = createClient({ url: daemon.url, token })
  t.same(await answers('token', program, {}), ['403', '403'])
  // Its words stay in the conversation: nobody who speaks there later lends them the network.
  t.same(await answers('mine', program, {}), ['200', '403'], 'a token speaks')
  t.same(await answers('mine', client, {}), ['200', '403'], 'a token has spoken')
  const asked = ['ask Go on?', runs(asks('GET', '/vpn'))].join('\n')
  const { run } = await client.call('POST /agent', { conversationId: 'asked', prompt: asked })
  const watched = framesOf(client, 'asked', { run })
  const { requestId } = await watched.until(frame => frame.kind === 'question')
  await program.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'Go on?': ['yes'] } })
  const heard = (await watched.all()).map(({ event }) => event)
  t.match(answersOf(heard).at(-1)?.text, /^403 /, 'a token answers')
  const helper = await joined(daemon, 'Helper', 'collaborator')
  t.same(await answers('helper', helper.client, {}), ['200', '403'], 'may not land')

  const { policy, revision } = await client.call('GET /safety')
  const rule = {
    id: 'no-vpn',
    label: 'No tunnels',
    target: 'action',
    match: { action: 'sandbox.vpn' },
    verdict: 'hold',
  }
  await client.call('POST /safety', { policy: { ...policy, rules: [rule as never] }, revision })
  t.same(await answers('held', client, {}), ['200', '403'])
})

t.test('files of a proposal are those of the tree of the turn', walled(), async t => {
  const daemon = await daemonOf(t, USERS[0]![1], { 'README.md': '# work\n', '.gitignore': 'kept\n', kept: 'private\n' })
  const { client } = daemon
  const withMedia = (path: string) =>
    post({ post: { platform: 'webhook', target: 'http://127.0.0.1:9', content: 'Hi.', media: [path] } })
  const { run } = await client.call('POST /agent', {
    conversationId: 'apart',
    isolated: true,
    prompt: [
      'echo own > own.txt',
      asks('POST', '/approvals', withMedia('own.txt')),
      asks('POST', '/approvals', withMedia('kept')),
      asks('POST', '/approvals', withMedia('../w/kept')),
      'ln -s /etc/passwd link',
      asks('POST', '/approvals', withMedia('link')),
    ]
      .map(runs)
      .join('\n'),
  })
  const frames = (await framesOf(client, 'apart', { run }).all()).map(({ event }) => event)
  const [, own, outside, above, , link] = answersOf(frames).map(({ text }) => text)
  t.match(own, /^200 /)
  t.match(outside, /^422 /)
  t.match(above, /^4\d\d /)
  t.match(link, /^4\d\d /)
})
