import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { startDaemon, type Daemon } from '../../kernel/daemon.js'
import type { Deployment } from '../../kernel/config/deployment.js'
import { createLog } from '../../kernel/logs/log.js'
import { createClient, type Client } from '../../sdk/client.js'
import { askSocket } from '../../sdk/cli/daemon/socket.js'
import type { Api } from '../../sdk/api.js'
import type { Handlers } from '../../sdk/contract.js'
import type { Scope } from '../../sdk/types.js'
import { ALSO_UNWALLED } from './walls.js'
import { checkAnswers } from './answers.js'
import { copyRepository } from './repositories/prepared-repository.js'
import { searchSecrets, watchCalls, watchProcess } from './secret-search.js'
import { programFile } from '../../sdk/node/programs/package.js'

/** The folder of the built program. */
export const root = fileURLToPath(new URL('../../', import.meta.url))

const ours = join(root, '..', 'manifests')

export interface Support extends Daemon {
  readonly workspace: string
  readonly data: string
  /** The owner's client. */
  readonly client: Client
  /** A client with a fresh control token. */
  token(scope: Scope, label?: string): Promise<{ client: Client; token: string; id: string }>
  /** A plain request, with the owner's session unless the headers have another credential. */
  fetch(path: string, init?: RequestInit & { headers?: { [name: string]: string } }): Promise<Response>
  readonly session: string
  /** Every line the daemon logged. */
  readonly logged: string[]
}

export interface SupportOptions {
  /** Calls served in place of groups that are not loaded. */
  fakes?: Partial<Handlers<Api>>
  apart?: readonly string[]
  /** Files of the workspace, which becomes a git repository with one commit unless `git` is false. */
  files?: { readonly [path: string]: string }
  git?: boolean
  deployment?: Deployment
  /** The test makes calls answer with undeclared statuses, so answers are not checked against the document. */
  undeclared?: true
  workspace?: string
  data?: string
  /** What the boot waits for: the daemon is returned before it is ready. */
  boot?: Promise<void>
  /** The folder of the manifests, instead of the product's. */
  manifests?: string
}

/** A daemon in this process with the named groups (all: `[]`), its replies checked against their contracts. */
export const daemonWith = async (
  t: Test,
  groups: readonly string[],
  options: SupportOptions = {},
): Promise<Support> => {
  const folder = options.workspace && options.data ? '' : folderOf(t)
  const workspace = options.workspace ?? join(folder, 'workspace')
  const data = options.data ?? join(folder, 'data')
  mkdirSync(data, { recursive: true, mode: 0o700 })
  if (!options.workspace) makeWorkspace(workspace, options.files, options.git)
  const logged: string[] = []
  const daemon = await startDaemon({
    config: {
      workspace,
      data,
      host: '127.0.0.1',
      port: 0,
      store: `sqlite://${join(data, 'store.sqlite')}`,
      json: true,
      needsWall: false,
      deployment: options.deployment ?? {},
    },
    root,
    manifests: options.manifests ?? ours,
    log: createLog(true, line => logged.push(line)),
    checked: true,
    ...(groups.length > 0 && { only: groups }),
    ...(options.apart && { apart: { groups: options.apart, root: options.manifests ? root : programFile('.') } }),
    extra: kernel => {
      watchCalls(kernel.calls, { data, workspace }, logged)
      if (options.boot) kernel.boot.add('test', 'A step of the test', () => options.boot!)
      for (const [call, answer] of Object.entries(options.fakes ?? {})) {
        kernel.calls.add(call, 'fake', async (_, input, context) =>
          (answer as (input: unknown, context: unknown) => unknown)(input, context),
        )
      }
    },
  })
  t.teardown(async () => {
    await daemon.stop()
    endTerminals(data)
  })
  if (!options.boot) await daemon.ready
  const session = daemon.auth.openLocal('test').token
  const { url } = daemon
  if (!options.manifests && !options.undeclared)
    checkAnswers(Number(new URL(url).port), call => daemon.kernel.calls.has(call))
  return {
    ...daemon,
    workspace,
    data,
    session,
    logged,
    client: createClient({ url, session }),
    token: async (scope, label = scope) => {
      const { id, token } = await daemon.auth.handlers['kernel.token.mint'](
        { label, scope, createdBy: 'owner@sandbox.local' },
        OWNER,
      )
      return { id, token, client: createClient({ url, token }) }
    },
    fetch: (path, init = {}) =>
      fetch(url + path, {
        ...init,
        headers: {
          authorization: `Bearer ${session}`,
          ...(init.body !== undefined && { 'content-type': 'application/json' }),
          ...init.headers,
        },
      }),
  }
}

/** Ends the terminals of a data folder, because they outlive their daemon. */
export const endTerminals = (data: string): void => {
  const cwd = join(data, 'system', 'terminals')
  for (const name of existsSync(cwd) ? readdirSync(cwd) : []) {
    try {
      execFileSync('tmux', ['-S', name, '-N', 'kill-server'], { cwd, stdio: 'ignore' })
    } catch {
      // The session has already ended.
    }
  }
}

const OWNER = {
  caller: { kind: 'session', actor: 'owner@sandbox.local', role: 'owner' },
  signal: new AbortController().signal,
  trusted: true,
} as const

/** The folders of each test. */
const folders = new WeakMap<Test, string[]>()

/**
 * A new empty folder for the test. It is removed after everything else that the test tears
 * down, because tap does that in reverse order; a daemon that ran out of time to stop may still write there meanwhile.
 */
export const folderOf = (t: Test): string => {
  const away = { recursive: true, force: true, maxRetries: 20, retryDelay: 100 } as const
  const made = folders.get(t) ?? []
  if (made.length === 0) {
    folders.set(t, made)
    t.teardown(async () => {
      try {
        for (const folder of made) searchSecrets(folder)
      } finally {
        await Promise.all(made.map(folder => rm(folder, away)))
      }
    })
  }
  const folder = made.length ? `${t.testdirName}-${made.length + 1}` : t.testdirName
  rmSync(folder, away)
  mkdirSync(folder, { recursive: true })
  made.push(realpathSync(folder))
  return made.at(-1)!
}

/** A folder with files; a git repository with one commit unless `git` is false. */
export const makeWorkspace = (
  workspace: string,
  files: { readonly [path: string]: string } = { 'README.md': '# work\n' },
  git = true,
): void => {
  mkdirSync(workspace, { recursive: true })
  const made = (folder: string) => {
    writeFiles(folder, files)
    if (git) commitAll(folder)
  }
  if (git && readdirSync(workspace).length === 0) copyRepository(workspace, files, made)
  else made(workspace)
}

const writeFiles = (folder: string, files: { readonly [path: string]: string }): void => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
}

const commitAll = (folder: string): void => {
  inGit(folder, 'init', '-q', '-b', 'main')
  inGit(folder, 'add', '-A')
  inGit(folder, 'commit', '-q', '--allow-empty', '-m', 'first')
}

/** Runs git like a user, and returns its output. */
export const inGit = (folder: string, ...args: string[]): string =>
  execFileSync(
    'git',
    ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.org', '-c', 'maintenance.auto=false', ...args],
    {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      maxBuffer: 1 << 28,
      env: {
        ...process.env,
        GIT_CONFIG_GLOBAL: '/dev/null',
        GIT_CONFIG_SYSTEM: '/dev/null',
        GIT_CEILING_DIRECTORIES: join(folder, '..'),
      },
    },
  )

const sessionAt = (socket: string): Promise<{ token: string }> => askSocket(socket, { do: 'session', device: 'test' })

/** A session of a daemon that runs as another user, whose socket answers only programs of that user. */
const sessionAs = (user: number, socket: string): string => {
  const ask = `import(${JSON.stringify(new URL('../../sdk/cli/daemon/socket.js', import.meta.url).href)})
    .then(({ askSocket }) => askSocket(${JSON.stringify(socket)}, { do: 'session', device: 'test' }))
    .then(({ token }) => process.stdout.write(token))`
  return execFileSync(process.execPath, ['-e', ask], {
    encoding: 'utf8',
    cwd: '/',
    uid: user,
    gid: user,
    env: {},
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

export interface RunningDaemon {
  readonly url: string
  readonly session: string
  readonly pid: number
  readonly process: ChildProcess
  readonly client: Client
  /** A client that does not resume an interrupted stream. */
  readonly once: Client
  readonly data: string
  readonly workspace: string
  readonly stderr: () => string
  /** Kills it with SIGKILL. */
  kill9(): Promise<void>
  /** Ends it like an operator, with SIGTERM; returns the exit code. */
  terminate(): Promise<number | null>
}

/**
 * The real program in its own process, optionally as another user; `starter` is put before it on the command
 * line, `program` is another copy of it.
 */
export const spawnDaemon = async (
  t: Pick<Test, 'teardown'>,
  {
    workspace,
    data,
    env,
    args = [],
    starter = [],
    program: main = programFile('kernel/main.js'),
    user,
  }: {
    workspace: string
    data: string
    env?: NodeJS.ProcessEnv
    args?: string[]
    starter?: readonly string[]
    program?: string
    user?: number
  },
): Promise<RunningDaemon> => {
  const [program = '', ...rest] = [
    ...starter,
    process.execPath,
    main,
    '--json',
    '--port',
    '0',
    '--workspace',
    workspace,
    '--data',
    data,
    ...args,
  ]
  const child = spawn(program, rest, {
    stdio: ['ignore', 'pipe', 'pipe'],
    // It ends with a test that runs out of time, unless something stands between them.
    env: {
      ...process.env,
      ...ALSO_UNWALLED,
      ...(starter.length === 0 && { SANDBOX_PARENT: String(process.pid) }),
      ...env,
    },
    ...(user !== undefined && { uid: user, gid: user }),
  })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', text => (errors += text))
  watchProcess(child.pid!, { data, workspace }, () => errors)
  const exited = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGTERM')
    await exited
  })
  const line = await Promise.race([
    once(createInterface(child.stdout), 'line').then(([text]) => String(text)),
    exited.then(([code]) => Promise.reject(new Error(`the daemon ended with ${code}: ${errors}`))),
  ])
  const { url, pid } = JSON.parse(line) as { url: string; pid: number }
  const { socket } = JSON.parse(readFileSync(join(data, 'daemon.json'), 'utf8')) as { socket: string }
  const token = user === undefined ? (await sessionAt(socket)).token : sessionAs(user, socket)
  return {
    url,
    session: token,
    pid,
    process: child,
    workspace,
    data,
    client: createClient({ url, session: token }),
    once: createClient({ url, session: token, retry: { attempts: 0 } }),
    stderr: () => errors,
    kill9: async () => {
      child.kill('SIGKILL')
      await exited
    },
    terminate: async () => {
      child.kill('SIGTERM')
      const [code] = await exited
      return code as number | null
    },
  }
}
