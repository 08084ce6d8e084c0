import { once } from 'node:events'
import { existsSync, globSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Deployment } from '../../../kernel/config/deployment.js'
import type { FrameEvent } from '../../../plugins/agent/contract.js'
import { inner } from '../../plugins/agent/support.js'
import { treeOf } from '../../plugins/agents/support.js'
import {
  daemonWith,
  folderOf,
  inGit,
  makeWorkspace,
  spawnDaemon,
  type RunningDaemon,
  type Support,
} from '../../support/daemon.js'

/** A workspace and its data, which successive daemons share. */
export interface Where {
  readonly workspace: string
  readonly data: string
  /** Arguments of the daemon. */
  readonly args?: string[]
}

/** The failpoints whose cases are in their own test file, because they need other daemons. */
export const ACCESS_POINTS: readonly string[] = ['access.granted', 'access.opened', 'access.removed']

export const ACCOUNTS_POINTS: readonly string[] = ['accounts.connected']

export const APPROVALS_POINTS: readonly string[] = [
  'approvals.answered',
  'approvals.approved',
  'approvals.ended',
  'approvals.sending',
]

export const AUTOMATIONS_POINTS: readonly string[] = [
  'automations.fire.checking',
  'automations.fire.journaled',
  'automations.fire.recorded',
  'automations.fire.started',
  'automations.slot.claimed',
  'automations.visit.kept',
  'automations.wake.held',
]

export const SECRETS_POINTS: readonly string[] = [
  'secrets.ci.noted',
  'secrets.ci.pushed',
  'secrets.env.dropped',
  'secrets.env.written',
  'secrets.move.begun',
  'secrets.move.cleaned',
  'secrets.move.filled',
  'secrets.move.switched',
  'secrets.vault.written',
]

export const CAPABILITIES_POINTS: readonly string[] = [
  'capabilities.payment.settled',
  'capabilities.payment.signed',
  'capabilities.plugin.placed',
  'capabilities.suggestion.dismissed',
]

export const SHARE_POINTS: readonly string[] = ['share.kept', 'share.removed', 'share.written']

export const SHIELD_POINTS: readonly string[] = ['shield.policy.kept', 'shield.tokens.forgotten', 'shield.tokens.kept']

export const SKILLS_POINTS: readonly string[] = ['skills.import.staged', 'skills.import.whole']

export const WORKSPACE_POINTS: readonly string[] = [
  'workspace.apps.moved',
  'workspace.apps.noted',
  'workspace.apps.staged',
  'workspace.archive.staged',
  'workspace.copy.staged',
  'workspace.install.ended',
  'workspace.install.queued',
  'workspace.restore.moved',
  'workspace.restore.noted',
  'workspace.trash.noted',
  'workspace.trash.taken',
  'workspace.unpack.staged',
  'workspace.upload.part',
  'workspace.upload.whole',
]

export const GIT_POINTS: readonly string[] = [
  'cli.apply.kept',
  'inventory.monorepo.written',
  'inventory.repository.made',
  'git.clone.staged',
  'git.discard.saved',
  'git.file.written',
  'known-hosts.kept',
  'git.start.committed',
  'git.write.begun',
  'history.restore.begun',
  'history.restore.written',
  'history.trees.kept',
]

export const EXTENSIONS_POINTS: readonly string[] = [
  'extensions.approved',
  'extensions.code.placed',
  'extensions.create.moved',
  'extensions.create.noted',
  'extensions.dev.copied',
  'extensions.dev.ending',
  'extensions.dev.swapped',
  'extensions.install.recorded',
  'extensions.remove.code',
  'extensions.remove.connections',
  'extensions.remove.folder',
  'extensions.remove.marked',
  'extensions.remove.settings',
  'extensions.settings.secrets',
  'extensions.switched',
  'extensions.update.review-started',
  'extensions.update.swapped',
]

export const VPN_POINTS: readonly string[] = ['vpn.dial.connected', 'vpn.dial.noted']

export const EXIT_POINTS: readonly string[] = ['exit.start.noted', 'exit.start.proven']

export const WORKFLOWS_POINTS: readonly string[] = [
  'workflows.run.stored',
  'workflows.step.ended',
  'workflows.step.noted',
  'workflows.step.result',
  'workflows.step.started',
]

export const LOOPS_POINTS: readonly string[] = [
  'loops.begun',
  'loops.round.accepted',
  'loops.round.noted',
  'loops.round.recorded',
]

export const CHORES_POINTS: readonly string[] = ['chores.asked', 'chores.concluded:2', 'chores.measured']

export const DISKS_POINTS: readonly string[] = ['disks.started']

export const PIPELINES_POINTS: readonly string[] = [
  'pipelines.check.began',
  'pipelines.event.delivered',
  'pipelines.fix.noted',
]

export const ISSUES_POINTS: readonly string[] = ['issues.fix.noted', 'issues.kept', 'issues.logged', 'issues.stored']

export const NEEDS_POINTS: readonly string[] = ['needs.message.accepted', 'needs.message.noted', 'needs.settled']

export const OUTBOX_POINTS: readonly string[] = [
  'outbox.noted',
  'outbox.parted',
  'outbox.placed',
  'outbox.staged',
  'outbox.withdrawn',
]

export const PANELS_POINTS: readonly string[] = ['panels.noted']

export const PUSH_POINTS: readonly string[] = ['push.registered', 'push.removed']

export const PERSONAS_POINTS: readonly string[] = ['personas.card.removed', 'personas.kit.parked']

/** The longest wait for a step that happens by itself. */
export const LATE_MS = 20_000

/** Two fresh folders, with turns that resume after a restart. */
export const whereIn = (t: Test, files: { readonly [path: string]: string } = {}, deployment?: Deployment): Where => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace, {
    '.sandbox/config/settings.json': '{"autoResumeOnRestart":true}\n',
    'README.md': '# work\n',
    ...files,
  })
  if (!deployment) return where
  const config = join(folder, 'config.json')
  writeFileSync(config, JSON.stringify(deployment))
  return { ...where, args: ['--config', config] }
}

/** Drives the real program until it ends at the failpoint; calls in flight then fail. */
export const dies = async (
  t: Test,
  where: Where,
  point: string,
  drive: (daemon: RunningDaemon) => Promise<unknown>,
): Promise<void> => {
  const daemon = await spawnDaemon(t, { ...where, env: { SANDBOX_FAILPOINT: point } }).catch(() => undefined)
  // It was killed during its start.
  if (!daemon) return
  const died = once(daemon.process, 'exit')
  // Its stream ends when it dies: nobody waits for it to come back.
  const driven = drive({ ...daemon, client: daemon.once }).then(
    () => undefined,
    (error: unknown) => error,
  )
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<'late'>(
    resolve => void driven.then(() => (timer = setTimeout(resolve, LATE_MS, 'late').unref())),
  )
  const end = await Promise.race([died, late])
  clearTimeout(timer)
  if (end === 'late') throw new Error(`${point} was not passed`, { cause: await driven })
  t.same(end, [null, 'SIGKILL'], `died at ${point}`)
  await driven
}

/** The frames of a run in its journal; checks that positions have no gap and that `done` is at most once and last. */
export const kept = async (
  t: Test,
  { kernel }: Support,
  run: string,
  seen: readonly { seq: number; event: object }[] = [],
) => {
  const frames = await kernel.journals.read<FrameEvent>(`agent/frames/${run}`)
  if (!frames.length) return []
  t.same(
    frames.map(({ seq }) => seq),
    frames.map((_, index) => index + 1),
    'positions have no gap',
  )
  t.same(
    frames.slice(0, seen.length).map(({ seq, event }) => ({ seq, event })),
    seen,
    'earlier frames are unchanged',
  )
  t.ok(frames.findIndex(({ event }) => event.kind === 'done') === frames.length - 1, 'done is the last frame')
  return frames.map(({ event }) => event)
}

/**
 * Stops a daemon and returns everything that a restart could change. Frames of older runs are kept only briefly and are
 * left out.
 */
const endOf = async (daemon: Support) => {
  const { workspace, data, client } = daemon
  const { conversations } = await inner(daemon, 'agent.conversations', {} as never)
  const newest = new Set(conversations.map(({ conversation: { lastRun } }) => `agent/frames/${lastRun}.events`))
  const { agents } = await client.call('GET /agents')
  const { agents: archived } = await client.call('GET /agents/archived', {})
  // This waits until an unfinished warm copy is complete.
  await daemon.stop()
  return {
    agents,
    archived,
    tree: treeOf(workspace),
    refs: inGit(workspace, 'for-each-ref') + readFileSync(join(workspace, '.git/HEAD'), 'utf8'),
    // A daemon that stops early has not made its warm copy.
    gitdirs: gitdirsOf(data, id => id !== '.spare').length,
    journals: Object.entries(treeOf(join(data, 'journals'))).filter(
      ([name]) => !name.startsWith('agent/frames/r-') || newest.has(name),
    ),
  }
}

/** The leftovers of interrupted steps, which must not exist once the next daemon is idle. */
const halfDone = ({ workspace, data }: Where): string[] => [
  ...globSync('{.git/**/*.lock,**/.sandbox-write-*}', { cwd: workspace }),
  ...['rewinds', 'forks', 'runs', 'bad'].flatMap(name => globSync(`journals/agent/${name}/*`, { cwd: data })),
  ...globSync(['files/agents/landings/*', 'agent/rebasing/*', 'agents/benches/*'], { cwd: data }),
  ...folders(join(data, 'agent', 'git')).filter(
    name => !gitdirsOf(data).includes(join(data, 'agent', 'git', name.replace(/\.(?:seen|form)$/, ''))),
  ),
  ...globSync('.git/{worktrees/*,objects/tmp_*}', { cwd: workspace }),
  ...folders(join(data, 'agent', 'checkouts')).filter(
    id => id !== '.spare' && !existsSync(join(data, 'agent', 'made', `${id}.json`)),
  ),
]

/** The git dirs that the notes of copies name. */
const gitdirsOf = (data: string, fits: (id: string) => boolean = () => true): string[] =>
  folders(join(data, 'agent', 'made'))
    .filter(name => name.endsWith('.json') && fits(name.slice(0, -'.json'.length)))
    .flatMap(name =>
      (
        JSON.parse(readFileSync(join(data, 'agent', 'made', name), 'utf8')) as { repos: { gitdir: string }[] }
      ).repos.map(({ gitdir }) => gitdir),
    )

const folders = (path: string): string[] => (existsSync(path) ? readdirSync(path) : [])

/** Starts the next daemon, checks it with `look`, and checks that another start changes nothing. */
export const after = async (t: Test, where: Where, look: (daemon: Support) => Promise<unknown>): Promise<void> => {
  const next = await daemonWith(t, [], where)
  await look(next)
  const before = await endOf(next)
  t.same(halfDone(where), [], 'nothing is left half-done')
  t.same(await endOf(await daemonWith(t, [], where)), before, 'another restart changes nothing')
}
