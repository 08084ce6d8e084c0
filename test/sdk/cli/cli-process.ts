import { spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { pathToFileURL } from 'node:url'
import type { Test } from 'tap'
import type { Frame } from '../../../plugins/agent/contract.js'
import { wantsColour, widthOf } from '../../../sdk/cli/terminal/appearance.js'
import { packageVersion, programFile } from '../../../sdk/node/programs/package.js'
import { ALSO_UNWALLED } from '../../support/walls.js'
import { type Answerer, json, runBytes, streaming, wireServer } from '../wire.js'

const ROOT = programFile('.')
export const PROGRAM = programFile('sdk/cli.js')

const installed = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'installed-'))
  process.once('exit', () => rmSync(folder, { recursive: true }))
  symlinkSync(PROGRAM, join(folder, 'sandbox'))
  return `${folder}:${process.env.PATH}`
}
/** A PATH on which the program is `sandbox`, as after an installation. */
export const PATH = installed()

/** The result of a run of the program. */
export interface Ran {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export interface RunOptions {
  readonly env?: { readonly [name: string]: string }
  readonly cwd?: string
  readonly input?: string
  /** Called with the output so far, to stop it by a signal. */
  readonly watch?: (out: string, kill: (signal: NodeJS.Signals) => void) => void
}

/** Isolates the program from daemons that run outside the tests. */
const envWith = (env: RunOptions['env']): { [name: string]: string } => ({
  PATH,
  HOME: process.env.HOME ?? '',
  XDG_STATE_HOME: '/nowhere',
  ...ALSO_UNWALLED,
  ...env,
})

/** The built program without its process. Its name for itself is what it was found by when it was loaded. */
const loaded = async (): Promise<typeof import('../../../sdk/cli/program.js')> => {
  const [chunk] = /chunks\/program-\w+\.js/.exec(readFileSync(PROGRAM, 'utf8'))!
  const [path, own] = [process.env.PATH, process.argv[1]]
  Object.assign(process.env, { PATH })
  process.argv[1] = PROGRAM
  try {
    return (await import(pathToFileURL(join(ROOT, chunk)).href)) as typeof import('../../../sdk/cli/program.js')
  } finally {
    Object.assign(process.env, { PATH: path })
    process.argv[1] = own!
  }
}
let program: ReturnType<typeof loaded> | undefined

/** Collects what is written to it. */
const collector = () => {
  const stream = new PassThrough()
  let text = ''
  stream.setEncoding('utf8').on('data', (more: string) => {
    text += more
  })
  return { stream, ended: async () => (stream.end(), await finished(stream), text) }
}

/** Verbs that start a program with the streams of the process. */
const STARTS: readonly string[] = ['serve', 'script-agent']

/**
 * Runs the program as its own process does, in the process of the test: a start of Node takes longer than most of what
 * the program does.
 */
export const sandbox = async (args: readonly string[], options: RunOptions = {}): Promise<Ran> => {
  if (options.watch || args.some(arg => STARTS.includes(arg))) return sandboxProcess(args, options)
  const { runProgram } = await (program ??= loaded())
  const [out, err] = [collector(), collector()]
  const env = envWith(options.env)
  const width = widthOf(env, undefined)
  const code = await runProgram(args, {
    in: Readable.from([options.input ?? '']) as unknown as NodeJS.ReadStream,
    ...{ out: out.stream, err: err.stream, env, cwd: options.cwd ?? tmpdir(), root: ROOT },
    ...{ version: packageVersion(ROOT), interactive: false, signal: new AbortController().signal },
    colour: wantsColour(env, false),
    ...(width !== undefined && { width }),
  })
  return { code, out: await out.ended(), err: await err.ended() }
}

/** Runs the program in its own process. */
export const sandboxProcess = (
  args: readonly string[],
  { env = {}, cwd = tmpdir(), input = '', watch }: RunOptions = {},
): Promise<Ran> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [PROGRAM, ...args], { cwd, env: envWith(env) })
    let [out, err] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text
      watch?.(out, signal => child.kill(signal))
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err += text
    })
    child.once('error', reject)
    child.once('close', code => resolve({ code, out, err }))
    child.stdin.end(input)
  })

type Teardown = Pick<Test, 'teardown'>

/** A program that runs until it is stopped. */
export interface Going {
  readonly out: () => string
  readonly err: () => string
  readonly pid: number
  /** Writes to its standard input, and ends that; only with `gives`. */
  give(text: string): void
  /** Waits until the output matches. */
  until(fits: RegExp): Promise<RegExpExecArray>
  /** Sends a signal and returns the exit code. */
  end(signal?: NodeJS.Signals): Promise<number | null>
  readonly ended: Promise<number | null>
}

/** Starts the program and leaves it running. */
export const going = (
  t: Teardown,
  args: readonly string[],
  { env = {}, cwd = tmpdir(), gives = false }: RunOptions & { readonly gives?: boolean } = {},
): Going => {
  const { HOME } = process.env
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    cwd,
    env: { PATH, HOME, ...ALSO_UNWALLED, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  if (!gives) child.stdin.end()
  let [out, err] = ['', '']
  const heard = new Set<() => void>()
  const hear = () => heard.forEach(listen => listen())
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
    hear()
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text
    hear()
  })
  const ended = new Promise<number | null>(resolve =>
    child.once('close', code => {
      resolve(code)
      hear()
    }),
  )
  t.teardown(async () => {
    child.kill('SIGTERM')
    await ended
  })
  return {
    out: () => out,
    err: () => err,
    pid: child.pid!,
    give: text => void child.stdin.end(text),
    ended,
    until: fits =>
      new Promise((resolve, reject) => {
        const listen = () => {
          const found = fits.exec(out)
          const over = child.exitCode !== null || child.signalCode !== null
          if (!found && !over) return
          heard.delete(listen)
          if (found) resolve(found)
          else
            reject(
              new Error(`it ended with ${child.exitCode ?? child.signalCode} before it printed ${fits}: ${out}${err}`),
            )
        }
        heard.add(listen)
        listen()
      }),
    end: (signal = 'SIGTERM') => {
      child.kill(signal)
      return ended
    },
  }
}

/**
 * A fake daemon with everything the program uses: its note, its login socket, its health, the document if it is given,
 * and calls by the test.
 */
export const fakeDaemon = async (
  t: Pick<Test, 'teardown' | 'testdir'>,
  answer: Answerer,
  { pid = process.pid, document }: { readonly pid?: number; readonly document?: object } = {},
) => {
  const server = await wireServer(t, (seen, response) => {
    if (seen.path === '/health') return { ok: true }
    if (seen.path === '/openapi.json' && document) return document
    if (seen.path === '/system/sessions/revoke') return { ok: true, revoked: 1 }
    if (seen.headers.authorization !== 'Bearer sbs_cli' && seen.headers['x-sandbox-control'] !== 'sbc_x') {
      return json(response, 401, { reason: 'unauthenticated', message: 'expected a session or a token' })
    }
    return answer(seen, response)
  })
  const state = realpathSync(t.testdir({ sandbox: {}, workspace: { '.git': {}, deep: {} } }))
  const socket = await loginSocket(t, server.url)
  const workspace = join(state, 'workspace')
  note(state, '0123456789abcdef', { url: server.url, pid, socket, workspace })
  const env = { XDG_STATE_HOME: state }
  const calls = () => server.seen.filter(({ path }) => path !== '/health' && path !== '/system/sessions/revoke')
  return {
    ...server,
    calls,
    state,
    socket,
    workspace,
    env,
    run: (args: readonly string[], options: RunOptions = {}) => sandbox(args, { env, ...options }),
  }
}

/** Writes the note of a running daemon. */
export const note = (state: string, id: string, text: object | string): void => {
  mkdirSync(join(state, 'sandbox', id), { recursive: true })
  writeFileSync(join(state, 'sandbox', id, 'daemon.json'), typeof text === 'string' ? text : JSON.stringify(text))
}

const loginSocket = async (t: Teardown, base: string): Promise<string> => {
  const folder = mkdtempSync(join(tmpdir(), 'sbx-'))
  const path = join(folder, 's')
  const server = createServer(socket => {
    socket.write('{}\n')
    socket
      .on('error', () => {})
      .once('data', line => {
        const { do: what } = JSON.parse(String(line)) as { do: string }
        socket.end(
          `${JSON.stringify(what === 'login' ? { code: 'abc', url: `${base}/#login=abc` } : { token: 'sbs_cli' })}\n`,
        )
      })
  })
  await new Promise<void>(done => server.listen(path, done))
  t.teardown(() => {
    server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return path
}

/** Serves a run: the frames up to the first open card, and the rest once it is answered. */
export const runOf = (frames: readonly Frame[]): Answerer => {
  const waiting: (() => void)[] = []
  return ({ path, body }, response) => {
    if (path === '/agent')
      return { run: 'r-1', conversationId: body.conversationId, messageId: body.messageId, delivery: 'started' }
    if (path === '/agent/reply') {
      for (const goOn of waiting) goOn()
      return { ok: true }
    }
    const all = runBytes('r-1', frames).split(/(?<=\n\n)/)
    const at = frames.findIndex(frame => 'requestId' in frame && frame.kind !== 'resolved')
    streaming(response)
    if (at < 0) return void response.end(all.join(''))
    response.write(
      all
        .slice(0, at + 3)
        .join('')
        .replace(/"seq":\d+/, `"seq":${at + 1}`),
    )
    waiting.push(() => response.end(all.slice(at + 3).join('')))
  }
}
