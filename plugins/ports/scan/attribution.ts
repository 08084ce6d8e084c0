import { basename, relative } from 'node:path'
import { contains } from '../../../sdk/node/files/paths.js'
import type { PortEntry, PortOrigin } from '../contract.js'
import type { OwnedProcess, TerminalProcess } from '../../system/contract.js'
import type { SeenProcess } from './system-sockets.js'
import { containerTitle, programTitle } from './titles.js'

/** What the sandbox knows of processes. */
export interface KnownProcesses {
  /** The real path of the workspace. */
  readonly workspace: string
  readonly data: string
  readonly daemon: number
  readonly sessions: readonly TerminalProcess[]
  readonly owned: readonly OwnedProcess[]
}

/** Who started what listens. */
export interface Attribution extends Pick<PortEntry, 'kind' | 'title' | 'purpose' | 'origin' | 'cwd' | 'session'> {
  /** The terminal, extension program or conversation that started it: what it starts later has the same. */
  readonly starter?: string
}

interface Starter {
  readonly origin: PortOrigin
  readonly session?: string
  readonly conversationId?: string
}

const PROXIES = new Set([
  'docker-proxy',
  'rootlesskit',
  'rootlessport',
  'conmon',
  'containerd-shim',
  'podman',
  'pasta',
  'gvproxy',
])
const OWN = /^(?:tmux|slirp4netns|bwrap|chrom|headless_shell)/

const KINDS: { readonly [prefix: string]: PortOrigin } = {
  web: 'terminal',
  panel: 'panel',
  agent: 'agent',
  job: 'agent',
  proc: 'extension',
}

/** Attributes a process: the strongest evidence decides. */
export const attribute = (
  known: KnownProcesses,
  process: SeenProcess | undefined,
  ancestry: readonly number[],
  conversationId: string | undefined,
): Attribution => {
  const { workspace } = known
  const inside = process?.cwd !== undefined && contains(workspace, process.cwd)
  const cwd = process?.cwd === undefined ? undefined : inside ? relative(workspace, process.cwd) || '.' : process.cwd
  const started = starterOf(known, process, ancestry, conversationId, inside)
  const { origin, session } = started
  const starter = session ?? (started.conversationId && `conversation ${started.conversationId}`)
  const title = origin === 'container' ? containerTitle(process!.args) : programTitle(process?.args ?? [])
  return {
    kind: origin === 'sandbox' || (origin === 'unknown' && !inside) ? 'system' : 'workspace',
    title,
    purpose: `${placeOf(cwd)}, ${startedBy(started)}.`,
    origin,
    ...(cwd !== undefined && { cwd }),
    ...(session !== undefined && { session }),
    ...(starter !== undefined && { starter }),
  }
}

const starterOf = (
  known: KnownProcesses,
  process: SeenProcess | undefined,
  ancestry: readonly number[],
  conversationId: string | undefined,
  inside: boolean,
): Starter => {
  const program = basename(process?.args[0] ?? '')
  if (!inside && PROXIES.has(program)) return { origin: 'container' }
  // In the folder of a repository a program is the user's, even one that the sandbox runs too.
  if (!inside && OWN.test(program) && process!.args.some(each => each.includes(known.data)))
    return { origin: 'sandbox' }
  for (const pid of ancestry) {
    const owner = known.owned.find(each => each.pid === pid)
    if (owner?.origin === 'extension' && owner.session !== undefined)
      return { origin: 'extension', session: owner.session }
    if (owner?.origin === 'agent')
      return { origin: 'agent', ...(owner.conversationId !== undefined && { conversationId: owner.conversationId }) }
    const session = known.sessions.find(each => each.pid === pid)?.name
    if (session !== undefined) return { origin: KINDS[session.split('-', 1)[0]!] ?? 'terminal', session }
  }
  if (conversationId !== undefined) return { origin: 'agent', conversationId }
  return { origin: !inside && ancestry.includes(known.daemon) ? 'sandbox' : 'unknown' }
}

const placeOf = (cwd: string | undefined): string => {
  if (cwd === undefined) return 'Its folder is not known'
  return `Runs in ${cwd === '.' ? 'the workspace' : cwd}`
}

const startedBy = ({ origin, session, conversationId }: Starter): string => {
  switch (origin) {
    case 'terminal':
      return `started in the terminal ${session}`
    case 'panel':
      return `started as an app in the terminal ${session}`
    case 'agent':
      return `started by ${conversationId === undefined ? 'an agent' : `the conversation ${conversationId}`}`
    case 'extension':
      return `started by the extension program ${session}`
    case 'container':
      return 'published by a container engine'
    case 'sandbox':
      return 'started by the sandbox itself'
    case 'unknown':
      return 'started by no terminal or agent of the sandbox'
  }
}
