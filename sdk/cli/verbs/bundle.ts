import { createWriteStream } from 'node:fs'
import { copyFile, mkdir, realpath, rename, rm, stat } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Bundle, RestoreReport } from '../../../plugins/system/contract.js'
import type { Client } from '../../client.js'
import { Refusal, type RefusalBody } from '../../refusal.js'
import { askedAs } from '../calls/asked-as.js'
import { asked, printResult } from '../terminal/asked.js'
import { connected, type Connection } from '../daemon/connection.js'
import { askHidden } from '../terminal/hidden.js'
import { bar, bytesWords } from '../../sizes.js'
import { counted, oneLine, stylesOf } from '../terminal/text.js'
import { dateWords } from '../terminal/values.js'
import { CONNECTION, EXIT, CommandFailure, type GivenArguments, misused, type Terminal, type Verb } from '../verb.js'
import { say } from '../terminal/write.js'

const BAR = 24
const TRIES = 5
const FORMS = 'bundle list, bundle FILE, bundle make [FILE], bundle remove NAME, or bundle restore FILE [--check]'
/** Options of making one. */
const MAKES = ['encrypt', 'secrets', 'repo', 'since']

/** Makes, lists and removes backups, and restores a sandbox from one. */
export const bundle: Verb = {
  name: 'bundle',
  also: 'bundles',
  usage: '[list | FILE | make [FILE] | remove NAME | restore FILE [--check]]',
  summary: 'list the backups, back up the sandbox to a file, or restore it from one',
  examples: ['bundle', 'bundle backup.tar.gz', 'bundle list', 'bundle restore backup.tar.gz --check'],
  notes: [
    'Generated files are left out; members, sessions and tokens are never packed. make without FILE names it after '
      + 'the time.',
    'restore replaces the contents of the workspace and keeps the old ones for 7 days. The daemon restarts by itself.',
    'The passphrase comes from SANDBOX_PASSPHRASE, else it prompts for it: others could see an argument.',
  ],
  ids: { NAME: ['system', 'bundles'] },
  flags: {
    encrypt: { help: 'encrypt it with a passphrase' },
    secrets: { help: 'pack the values of secrets too; encrypts it' },
    repo: { value: 'REPO', multiple: true, help: 'only this repository; "root" is the workspace\'s own' },
    since: { value: 'TIME', help: 'only conversations that changed after it, such as 2030-01-31' },
    check: { help: 'show what a restore would do, and change nothing' },
    expect: { value: 'DIGEST', help: 'restore only the bundle that --check showed with this digest' },
    ...CONNECTION,
  },
  most: 2,
  run: (terminal, given) => {
    const [what = 'list', name] = given.args
    const known = ['list', 'make', 'remove', 'restore'].includes(what)
    if (what === 'make' || (!known && name === undefined))
      return connected(terminal, given, connection => make(terminal, given, connection, known ? name : what))
    const makes = MAKES.find(flag => given.on(flag) || given.all(flag).length > 0 || given.text(flag) !== undefined)
    if (what === 'list' && makes !== undefined) misused(`--${makes}: expected bundle FILE or bundle make`)
    if (what === 'list' && name === undefined)
      return askedAs(terminal, given, ['system', 'bundles'], (client, options) =>
        client.call('GET /bundles', undefined, options),
      )
    if (what === 'remove' && name !== undefined) {
      return asked(
        terminal,
        given,
        (client, options) => client.call('DELETE /bundles/{name}', { name }, options),
        () => `removed ${oneLine(name)}`,
      )
    }
    if (what === 'restore' && name !== undefined)
      return connected(terminal, given, connection => restore(terminal, given, connection, name))
    return misused(`expected ${FORMS}, found bundle ${given.args.join(' ')}`)
  },
}

const make = async (
  terminal: Terminal,
  given: GivenArguments,
  { client, url }: Connection,
  file?: string,
): Promise<number> => {
  const { signal } = terminal
  const [secrets, repos, since] = [given.on('secrets'), given.all('repo'), given.text('since')]
  const at = since === undefined ? undefined : Date.parse(since)
  if (Number.isNaN(at)) misused(`--since: expected a time such as 2030-01-31, found ${since}`)
  if (file !== undefined) await refuseTaken(resolve(terminal.cwd, file))
  const passphrase = secrets || given.on('encrypt') ? await newPassphrase(terminal) : undefined
  const { name } = await client.call(
    'POST /bundles',
    {
      ...(secrets && { secrets }),
      ...(repos.length > 0 && { repos: [...repos] }),
      ...(at !== undefined && { since: at }),
      ...(passphrase !== undefined && { passphrase }),
    },
    { signal },
  )
  const made = await followed(terminal, client, name)
  if (made.state !== 'ready')
    throw new CommandFailure(EXIT.failed, `the backup failed: ${oneLine(made.detail ?? 'no reason was given')}`)
  const target = resolve(terminal.cwd, file ?? name)
  await download(terminal, client, url, made, target)
  return printResult(
    terminal,
    given,
    { ...made, file: target },
    () => `${oneLine(target)}  ${bytesWords(made.sizeBytes)}`,
  )
}

const drawn = (terminal: Terminal, what: string, done: number, all: number): void => {
  if (terminal.columns === undefined) return
  say(terminal, `\r\u001b[K${what}  ${bar(all > 0 ? done / all : 0, BAR)}  ${bytesWords(done)} of ${bytesWords(all)}`)
}
const erased = (terminal: Terminal): void => void (terminal.columns !== undefined && say(terminal, '\r\u001b[K'))

/** Waits until the backup is packed, using the event stream. */
const followed = async (terminal: Terminal, client: Client, name: string): Promise<Bundle> => {
  const { signal } = terminal
  const left = new AbortController()
  try {
    for await (const event of await client.call(
      'GET /events',
      {},
      { signal: AbortSignal.any([signal, left.signal]) },
    )) {
      if (event.kind !== 'hello' && !(event.kind === 'runtimeChanged' && event.domains.includes('bundles'))) continue
      const { exports } = await client.call('GET /bundles', undefined, { signal })
      const found = exports.find(each => each.name === name)
      if (!found) break
      if (found.state !== 'packing') return found
      drawn(terminal, 'packing', found.doneBytes ?? 0, found.sizeBytes)
    }
  } finally {
    erased(terminal)
    left.abort()
  }
  throw new CommandFailure(EXIT.failed, 'the backup was removed, or the sandbox stopped while packing it')
}

const refuseTaken = async (target: string): Promise<void> => {
  if (await stat(target).catch(() => undefined))
    throw new CommandFailure(EXIT.refused, `${target} already exists: choose another file, or remove it`)
}

/** Downloads a backup into a file that gets its name when it is complete; resumes an interrupted download. */
const download = async (
  terminal: Terminal,
  client: Client,
  url: string,
  { name, sizeBytes }: Bundle,
  target: string,
): Promise<void> => {
  await refuseTaken(target)
  const { ticket } = await client.call('POST /system/ws-ticket', { for: 'bundle', name }, { signal: terminal.signal })
  const part = `${target}.part`
  await rm(part, { force: true })
  try {
    for (let tries = 1, done = 0; done < sizeBytes; tries++) {
      const before = done
      await piece(
        terminal,
        `${url}/bundles/download?name=${encodeURIComponent(name)}&ticket=${ticket}`,
        part,
        done,
        sizeBytes,
      ).catch(error => {
        if (terminal.signal.aborted || error instanceof Refusal || tries >= TRIES) throw error
      })
      done = (await stat(part).catch(() => undefined))?.size ?? 0
      if (done > before) tries = 0
    }
    await rename(part, target)
  } finally {
    erased(terminal)
    await rm(part, { force: true })
  }
}

const piece = async (terminal: Terminal, url: string, part: string, from: number, all: number): Promise<void> => {
  const response = await fetch(url, {
    signal: terminal.signal,
    ...(from > 0 && { headers: { range: `bytes=${from}-` } }),
  })
  if (!response.ok) throw Refusal.parse((await response.json()) as RefusalBody)
  let done = response.status === 206 ? from : 0
  await pipeline(
    Readable.fromWeb(response.body as never),
    async function* (bytes: AsyncIterable<Buffer>) {
      for await (const one of bytes) {
        done += one.length
        drawn(terminal, 'fetching', done, all)
        yield one
      }
    },
    createWriteStream(part, { flags: response.status === 206 ? 'a' : 'w', mode: 0o600 }),
  )
}

const restore = async (
  terminal: Terminal,
  given: GivenArguments,
  { client, daemon }: Connection,
  file: string,
): Promise<number> => {
  const { signal } = terminal
  const mode = given.on('check') ? ('check' as const) : ('apply' as const)
  const expect = given.text('expect')
  const { path, cleanUp } = await placed(terminal, file, daemon?.workspace)
  try {
    const ask = (passphrase?: string) =>
      client.call(
        'POST /bundles/restore',
        {
          ...{ path, mode },
          ...(passphrase !== undefined && { passphrase }),
          ...(expect !== undefined && { expect }),
        },
        { signal },
      )
    const given_ = terminal.env.SANDBOX_PASSPHRASE
    const report = await ask(given_).catch(async error => {
      if (
        given_ !== undefined
        || !terminal.interactive
        || !(error instanceof Refusal)
        || !/give its passphrase/.test(error.message)
      )
        throw error
      return ask(await askHidden(terminal, 'passphrase: '))
    })
    return await printResult(terminal, given, report, () => reportLines(report, mode, terminal))
  } finally {
    await cleanUp()
  }
}

/** The path of a file in the daemon's workspace; copies a file from elsewhere into it until it was read. */
const placed = async (
  terminal: Terminal,
  file: string,
  workspace: string | undefined,
): Promise<{ path: string; cleanUp: () => Promise<void> }> => {
  // For a daemon on another machine the name is already a path in its workspace.
  if (workspace === undefined) return { path: file, cleanUp: async () => {} }
  const real = await realpath(resolve(terminal.cwd, file)).catch(() => {
    throw new CommandFailure(EXIT.failed, `there is no file ${file}`)
  })
  const own = relative(workspace, real)
  if (!own.startsWith('..')) return { path: own, cleanUp: async () => {} }
  const path = `.sandbox/incoming-${process.pid}.bundle`
  await mkdir(join(workspace, '.sandbox'), { recursive: true })
  await copyFile(real, join(workspace, path))
  return { path, cleanUp: () => rm(join(workspace, path), { force: true }) }
}

const reportLines = (
  { from, written, skipped, todo, restarting, digest }: RestoreReport,
  mode: 'check' | 'apply',
  terminal: Terminal,
): string[] => {
  const { bold, yellow } = stylesOf(terminal.colour)
  const files = written.filter(({ path }) => !path.startsWith('state/'))
  const kept = written.find(({ path }) => path === 'state/agent')?.files ?? 0
  const sum = files.reduce((all, one) => all + one.files, 0)
  const does = mode === 'check' ? 'would bring back' : 'brings back'
  return [
    bold(`${does} ${counted(sum, 'file')} and ${counted(kept, 'conversation')} of ${dateWords(from.createdAt)}`),
    ...skipped.map(({ path, reason }) => `${yellow('left out')} ${oneLine(path)}: ${oneLine(reason)}`),
    ...todo.map(what => `to do: ${oneLine(what)}`),
    ...(restarting ? ['the sandbox restarts now'] : []),
    ...(mode === 'check' ? [`to restore exactly this: --expect ${digest}`] : []),
  ]
}

const LEAST = 12

const newPassphrase = async (terminal: Terminal): Promise<string> => {
  const given = terminal.env.SANDBOX_PASSPHRASE
  const passphrase =
    given
    ?? (terminal.interactive
      ? await askHidden(terminal, 'passphrase: ')
      : misused('put the passphrase into SANDBOX_PASSPHRASE'))
  if (passphrase.length < LEAST) misused(`a passphrase needs at least ${LEAST} characters`)
  if (given === undefined && (await askHidden(terminal, 'once more: ')) !== passphrase)
    misused('the two passphrases differ')
  return passphrase
}
