import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { modelServer, type ScriptedCall } from '../../support/servers/model-server.js'
import { runTurn } from '../../support/turns.js'
import { answersOf, walled } from '../support.js'
import { USERS } from '../users.js'
import { daemonOf } from '../network/user-daemon.js'

interface Step {
  readonly call: ScriptedCall
  /** What its result says; undefined: it succeeds. */
  readonly refused?: RegExp
  /** What has happened outside before. */
  readonly before?: (workspace: string) => void
}

const step = (name: string, input: object, refused?: RegExp, before?: Step['before']): Step => ({
  call: { name, input },
  ...(refused && { refused }),
  ...(before && { before }),
})

/** Runs calls of a real model server's model, one after another, in the shared tree of a daemon. */
const run = async (t: Test, uid: number, files: { readonly [path: string]: Buffer }, steps: readonly Step[]) => {
  const daemon = await daemonOf(t, uid, { 'README.md': '# work\n' })
  const { client, workspace } = daemon
  for (const [path, bytes] of Object.entries(files)) {
    writeFileSync(join(workspace, path), bytes)
    execFileSync('chown', [`${uid}`, join(workspace, path)])
  }
  const server = await modelServer(t, 'openai', ({ body }) => {
    const nth = (body.messages ?? []).filter(({ role }) => role === 'tool').length
    const next = body.tools?.length ? steps[nth] : undefined
    next?.before?.(workspace)
    return next ? { calls: [{ ...next.call, id: `c${nth}` }] } : { text: ['ok'] }
  })
  const { baseUrl } = server.target()
  await client.call('POST /endpoints', { id: 'model', kind: 'server', protocol: 'openai', baseUrl })
  const turn = { agent: 'endpoint/model', model: 'm', permissionMode: 'bypassPermissions' }
  const answers = answersOf(await runTurn(client, 'one', 'go', turn))
  t.equal(answers.length, steps.length)
  for (const [nth, { call, refused }] of steps.entries()) {
    const what = `${nth} ${call.name} ${JSON.stringify(call.input).slice(0, 80)}`
    const { ok = false, text = '' } = answers[nth] ?? {}
    t.equal(ok, refused === undefined, `${what}: ${text.slice(0, 300)}`)
    if (refused) t.match(text, refused, what)
  }
  return (path: string) => readFileSync(join(workspace, path))
}

const long = Buffer.from(Array.from({ length: 200 }, (_, line) => `line ${line}\n`).join(''))
const big = (text: string) => Buffer.from(`\uFEFF${text}`, 'utf16le').swap16()
const little = (text: string) => Buffer.from(`\uFEFF${text}`, 'utf16le')
const latin = (text: string) => Buffer.from(text, 'latin1')

for (const [user, uid] of USERS) {
  t.test(`${user}: a whole file is written only over what the model has seen`, walled(), async t => {
    const write = (path: string, content: string, refused?: RegExp, before?: Step['before']) =>
      step('Write', { path, content }, refused, before)
    const changes = (path: string, text: string) => (workspace: string) => writeFileSync(join(workspace, path), text)
    const read = await run(
      t,
      uid,
      {
        'small.txt': Buffer.from('theirs\n'),
        'long.txt': long,
        'edited.txt': Buffer.from('a\nb\n'),
        'binary.bin': Buffer.from([0, 1, 2]),
      },
      [
        write('small.txt', 'mine\n', /exists already, and you have not read it[\s\S]*it is:\ntheirs/),
        write('small.txt', 'mine\n'),
        write('long.txt', 'mine\n', /have not read it[\s\S]*begins with:\nline 0[\s\S]*line 39/),
        write('long.txt', 'mine\n', /have not read it/),
        step('Read', { path: 'long.txt' }),
        write('long.txt', 'mine\n'),
        write('long.txt', 'mine again\n'),
        write(
          'long.txt',
          'over theirs\n',
          /changed since you read it[\s\S]*theirs now/,
          changes('long.txt', 'theirs now\n'),
        ),
        write('new.txt', 'one\n'),
        write('new.txt', 'two\n'),
        step('Read', { path: 'edited.txt' }),
        step('Edit', { path: 'edited.txt', old: 'a', new: 'c' }),
        write('edited.txt', 'whole\n'),
        write('binary.bin', 'text\n', /have not read it[\s\S]*binary, 3 bytes/),
      ],
    )
    t.equal(String(read('small.txt')), 'mine\n')
    t.equal(String(read('long.txt')), 'theirs now\n')
    t.equal(String(read('new.txt')), 'two\n')
    t.equal(String(read('edited.txt')), 'whole\n')
    t.same(read('binary.bin'), Buffer.from([0, 1, 2]))
  })

  t.test(`${user}: an edit keeps the encoding of a file, or says why it cannot`, walled(), async t => {
    const text = 'un été\r\ndeux\r\n'
    const read = await run(t, uid, { 'be.txt': big(text), 'le.txt': little(text), 'latin.txt': latin(text) }, [
      ...['be.txt', 'le.txt'].flatMap(path => [
        step('Read', { path }),
        step('Edit', { path, old: 'un été\ndeux', new: 'un hiver €\ntrois' }),
        step('Append', { path, content: 'fin\n' }),
      ]),
      step('Edit', { path: 'latin.txt', old: 'deux', new: 'trois' }, /not UTF-8 \(line 1\).*Latin-1.*iconv/),
      step('Append', { path: 'latin.txt', content: 'x' }, /not UTF-8/),
      step('Read', { path: 'latin.txt' }),
      step('Write', { path: 'latin.txt', content: 'x' }, /not UTF-8/),
    ])
    const after = 'un hiver €\r\ntrois\r\nfin\r\n'
    t.same(read('be.txt'), big(after))
    t.same(read('le.txt'), little(after))
    t.same(read('latin.txt'), latin(text))
  })
}
