import { realpath } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { dirname } from 'node:path'
import { passingPipes, gitPlacesOf } from './git-pipes.js'
import { listEnv, needProgram, ownEnv, ownProgram, run, type Env } from './run.js'
import { runWalled, type WallSpec } from '../wall/wall.js'

/** Who a commit is by. */
export interface Identity {
  readonly name: string
  readonly email: string
}

/** How git is to run. */
export interface GitOptions {
  readonly signal?: AbortSignal
  readonly input?: string | Uint8Array
  /** Added to the engine's own variables. */
  readonly env?: Env
  readonly maxBytes?: number
  /** Takes what git writes as it comes, however much; the answer then holds nothing of it. */
  readonly to?: (piece: Buffer) => void
  /** Takes what git says of its progress and of errors as it comes; it is in the answer too. */
  readonly said?: (piece: Buffer) => void
  /** 5 minutes when left out. */
  readonly timeoutMs?: number
  /** Exit codes that are an answer; 0 when left out. */
  readonly ok?: readonly number[]
  readonly identity?: Identity
  /** `own`: somebody waits for it, so it keeps the priority of this process behind a wall too. */
  readonly priority?: 'own'
  /** Behind this wall: needed by whatever reads an index or a working tree, whose filters and drivers are programs. */
  readonly wall?: Omit<WallSpec, 'cwd' | 'env'>
}

/** What git answered. */
export interface GitAnswer {
  readonly code: number
  readonly stdout: Buffer
  readonly text: string
  readonly stderr: string
}

/** Git said no; `message` is in its own words. */
export class GitFailure extends Error {
  readonly code: number
  readonly stderr: string

  constructor(command: string, code: number, stderr: string) {
    super(`git ${command}: ${stderr.trim() || `ended with ${code}`}`)
    this.name = 'GitFailure'
    this.code = code
    this.stderr = stderr
  }
}

const MAX_BYTES = 64 * 1024 * 1024
/** How much is kept where the rest is taken as it comes: git's own words of what went wrong. */
const KEPT_BYTES = 64 * 1024
const TIMEOUT_MS = 300_000
/** The most memory of a git, in KiB as `ulimit` counts: a small index can name much more than the machine has. */
const MOST_MEMORY = Math.max(2 * 1024 ** 2, Math.floor(totalmem() / 4 / 1024))
/** The system ends it before the daemon. */
const BOUNDED = `
{
  ulimit -d "$1"
  echo 500 > /proc/self/oom_score_adj
} 2> /dev/null
shift
exec "$@"
`

/** Faults of old tools that harm nobody, by git's names for them: whole histories hold them (git-fsck(1)). */
export const FORGIVEN: readonly string[] = [
  'zeroPaddedFilemode',
  'badTimezone',
  'missingSpaceBeforeDate',
  'missingSpaceBeforeEmail',
  'badDate',
  'badDateOverflow',
  'missingEmail',
]

/** Settings that a repository cannot override: none of them lets git run a program that the repository names. */
const SETTINGS = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.pager=cat',
  'core.editor=true',
  'core.askPass=true',
  'core.sshCommand=false',
  'core.gitProxy=',
  'core.alternateRefsCommand=true',
  'core.quotePath=false',
  'credential.helper=',
  'commit.gpgSign=false',
  'tag.gpgSign=false',
  'push.gpgSign=false',
  'log.showSignature=false',
  'merge.verifySignatures=false',
  'gpg.program=false',
  'sequence.editor=true',
  'protocol.ext.allow=never',
  'submodule.recurse=false',
  'fetch.recurseSubmodules=false',
  'gc.auto=0',
  'maintenance.auto=false',
  'safe.directory=*',
  'advice.detachedHead=false',
  'color.ui=false',
].flatMap(setting => ['-c', setting])

/** Outside a wall git reads no attributes but those of the repository. */
const UNWALLED = ['-c', 'core.attributesFile=/dev/null']

/** Commands that would run a diff program or a text converter of the repository unless told not to. */
const SHOWING = new Set(['diff', 'log', 'show', 'diff-tree', 'diff-index', 'diff-files', 'format-patch', 'whatchanged'])

/** The arguments before git's command: settings, each a pair. */
const settingsOf = (args: readonly string[]): readonly string[] => {
  let end = 0
  while (args[end] === '-c') end += 2
  return args.slice(0, end)
}

const guarded = (command: string, rest: readonly string[]): string[] => {
  if (SHOWING.has(command)) return [command, '--no-ext-diff', '--no-textconv', ...rest]
  return command === 'blame' ? [command, '--no-textconv', ...rest] : [command, ...rest]
}

const ENV = {
  GIT_TERMINAL_PROMPT: '0',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_ATTR_NOSYSTEM: '1',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_NO_LAZY_FETCH: '1',
  // One name that no transport has: git also fetches no missing object, whose program the repository would name.
  GIT_ALLOW_PROTOCOL: 'none',
  GIT_EDITOR: 'true',
  GIT_SEQUENCE_EDITOR: 'true',
  GIT_ASKPASS: 'true',
  GIT_PAGER: 'cat',
  LC_ALL: 'C.UTF-8',
}

const identityEnv = ({ name, email }: Identity): Env => ({
  GIT_AUTHOR_NAME: name,
  GIT_AUTHOR_EMAIL: email,
  GIT_COMMITTER_NAME: name,
  GIT_COMMITTER_EMAIL: email,
})

const LENT = /^(?:error|fatal): unable to normalize alternate object path: (.+)$/m

/** What git says, or why it finds no objects that it borrows from a folder that the wall does not show. */
const lentSentence = (stderr: string): string => {
  const folder = LENT.exec(stderr)?.[1]
  if (folder === undefined) return stderr
  return (
    `fatal: the repository borrows objects from ${folder}, which the wall does not show: add this folder to wall.read `
    + 'of the configuration of the deployment, or run `git repack -a -d` in the repository and delete its '
    + 'objects/info/alternates'
  )
}

/**
 * Runs git as the daemon's own engine: no hook, prompt, helper or setting of the repository starts a program, and no
 * transport is open unless `env` names it in `GIT_ALLOW_PROTOCOL`.
 *
 * `dir` is a path outside the wall; with `wall` it is a path as seen inside. Filters and merge drivers of a repository
 * cannot be switched off, so every command that touches an index or a working tree needs `wall`. Its memory is bounded.
 */
export const git = async (dir: string, args: readonly string[], options: GitOptions = {}): Promise<GitAnswer> => {
  const {
    signal,
    input,
    to,
    said,
    maxBytes = to ? KEPT_BYTES : MAX_BYTES,
    timeoutMs = TIMEOUT_MS,
    ok = [0],
    identity,
    priority,
    wall,
  } = options
  const ceiling = dirname(wall ? dir : await realpath(dir))
  const by = identity && identityEnv(identity)
  const own: Env = { ...ENV, GIT_CEILING_DIRECTORIES: ceiling, ...by, ...options.env }
  // Behind a wall too: a git that a turn wrote would answer for the repository.
  const program = await needProgram('git')
  const settings = settingsOf(args)
  const [command = '', ...rest] = args.slice(settings.length)
  const all = [...SETTINGS, ...(wall ? [] : UNWALLED), ...settings, '--no-pager', ...guarded(command, rest)]
  // A turn can write the index that it reads. Programs of a conversation have its limits.
  const isBounded = wall ? !wall.limits : own.GIT_INDEX_FILE !== undefined
  const shell = isBounded ? await ownProgram('sh') : undefined
  const [first, started] =
    shell === undefined ? [program, all] : [shell, ['-c', BOUNDED, 'git', String(MOST_MEMORY), program, ...all]]
  const onOutput =
    (to ?? said) && ((piece: Buffer, from: 'stdout' | 'stderr') => (from === 'stdout' ? to?.(piece) : said?.(piece)))
  const stuck = new AbortController()
  const until = signal ? AbortSignal.any([signal, stuck.signal]) : stuck.signal
  const how = {
    signal: until,
    input,
    maxBytes,
    timeoutMs,
    ...(priority && { priority }),
    ...(onOutput && { onOutput }),
  }
  const held = (pipe: string) =>
    stuck.abort(new GitFailure(command, 128, `waits for ${JSON.stringify(pipe)}, which is a pipe: remove it`))
  const { code, stdout, stderr, truncated, timedOut } = await passingPipes(
    gitPlacesOf(command, dir, own, wall),
    held,
    async () =>
      wall
        ? runWalled({ ...wall, cwd: dir, env: listEnv(own) }, first, started, how)
        : run(first, started, { ...how, cwd: dir, env: await ownEnv(own) }),
  )
  if (timedOut) throw new GitFailure(command, code, `did not end within ${timeoutMs / 1000} s`)
  if (truncated && !to) throw new GitFailure(command, code, `answered with more than ${maxBytes} bytes`)
  if (!ok.includes(code)) throw new GitFailure(command, code, wall ? lentSentence(stderr) : stderr)
  return { code, stdout: to ? Buffer.alloc(0) : stdout, text: to ? '' : stdout.toString(), stderr }
}

/** How a resident git is started that reads objects and refs of a repository. */
export interface ResidentGit {
  readonly program: string
  readonly args: string[]
  readonly env: Env
  readonly cwd: string
}

/** The command of a git that stays and reads objects and refs, under the same rules as `git`. */
export const residentGit = async (cwd: string, args: readonly string[], env: Env): Promise<ResidentGit> => ({
  program: await needProgram('git'),
  args: [...SETTINGS, ...UNWALLED, '--no-pager', ...args],
  env: await ownEnv({ ...ENV, GIT_CEILING_DIRECTORIES: dirname(cwd), ...env }),
  cwd,
})

let version: Promise<string> | undefined

/** The version of the git program, such as `2.39.5`. */
export const gitVersion = (): Promise<string> => {
  version ??= needProgram('git')
    .then(async program => run(program, ['version'], { cwd: '/', env: await ownEnv() }))
    .then(({ stdout }) => /\d+(\.\d+)+/.exec(stdout.toString())?.[0] ?? '0')
  version.catch(() => (version = undefined))
  return version
}
