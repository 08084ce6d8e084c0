import { refuse } from '../../../sdk/index.js'
import { walled } from '../../../sdk/node/wall/wall.js'
import {
  WITH_SANDBOX,
  type ConversationProcesses,
  type KnownProcess,
  type ProcessAccess,
} from './conversation-processes.js'
import type { ProcessTools } from '../tools/tool.js'
import type { PreparedTurn } from '../turn/environment/environment.js'
import type { TurnNote } from '../turn/frames/frames.js'
import type { Turn } from '../turn/turn.js'
import { walledShell, type ProgramListeners, type TreeWall } from '../turn/environment/shell.js'

const MOST_SHOWN = 160

/** What a turn reaches, as commands in the background compare it. */
export const processReach = ({ persona, folders }: Pick<PreparedTurn, 'persona' | 'folders'>): string =>
  JSON.stringify([persona?.id, persona?.powers, persona?.capabilities, persona?.repos, folders])

const sameAccess = (one: ProcessAccess, other: ProcessAccess): boolean =>
  one.trust === other.trust && one.reach === other.reach

const OTHER = 'was started by a turn with other access: end it, and start it again'

/** The commands in the background of a turn's conversation. */
export const processTools = (
  processes: ConversationProcesses,
  { conversationId, run, signal }: Pick<Turn, 'conversationId' | 'run' | 'signal'>,
  { root, cwd }: Pick<PreparedTurn, 'root' | 'cwd'>,
  {
    wall,
    programs: { begun, onStart, env: usual = {} },
    access,
  }: {
    readonly wall: TreeWall
    readonly programs: Pick<ProgramListeners, 'begun' | 'onStart' | 'env'>
    readonly access: () => ProcessAccess
  },
): ProcessTools => ({
  served: async () => true,
  start: async (command, at, { shown, env = {}, timeoutMs }) => {
    processes.assertRoom(conversationId)
    const { spec, folder, program, args } = walledShell(wall, root, {
      ...{ command, at: at === root ? cwd : at, env: { ...usual, ...env } },
    })
    const begins = access()
    const behind = await walled(spec, program, args)
    // What was to end with a stop or a change of rights has ended by now.
    signal.throwIfAborted()
    if (!sameAccess(begins, access())) refuse('conflict', 'the rights of this turn have changed: start it again')
    const started = processes.start(conversationId, { walled: behind, shown, timeoutMs, run, access: begins })
    const over = begun({ command: shown, folder })
    if (started.pid !== undefined) onStart(started.pid, started.over)
    void started.over.then(() => {
      const exit = started.ended?.exit
      over({ ...(exit !== undefined && { exit }), output: started.kept })
    })
    return started
  },
  all: () =>
    processes.all(conversationId).map(one => ({ ...described(one), usable: sameAccess(one.access, access()) })),
  one: (id, way) => {
    const known = processes.all(conversationId).find(one => one.id === id)
    if (!known) return refuse('not-found', `this conversation has no command ${id} in the background`)
    if (!known.process) return refuse('conflict', `${id} ${WITH_SANDBOX}, and its output is gone: start it again`)
    // Who may not use a command may still end it.
    if (way !== 'end' && !sameAccess(known.access, access())) return refuse('forbidden', `${id} ${OTHER}`)
    return known.process
  },
  told: () => processes.told(conversationId),
})

const described = ({ id, command, startedAt, process }: KnownProcess) => ({
  ...{ id, command, startedAt },
  state: process === undefined ? WITH_SANDBOX : (process.ended?.how ?? 'runs'),
})

/** What a turn is told of commands in the background: those that run, and those that ended since the last turn. */
export const processNotes = (
  processes: ConversationProcesses,
  conversationId: string,
  access: ProcessAccess,
): TurnNote[] => {
  const news = processes.all(conversationId).filter(({ process, told }) => (process && !process.ended) || !told)
  if (news.length === 0) return []
  const lines = news.map(one => {
    const { id, command, state } = described(one)
    const line = command.replace(/\s+/g, ' ')
    const shown = line.length > MOST_SHOWN ? `${line.slice(0, MOST_SHOWN).toWellFormed()}…` : line
    if (sameAccess(one.access, access)) return `${id} ${state}: ${shown}`
    return `${id} ${state === 'runs' ? OTHER : 'has ended'}`
  })
  processes.told(conversationId)
  return [{ title: 'Commands in the background', text: lines.join('\n') }]
}
