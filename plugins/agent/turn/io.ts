import { hash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { Refusal, refuse, ignored } from '../../../sdk/index.js'
import { ASKING_TOOLS, type TurnPowers } from '../../../sdk/node/access/powers.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import type { CardDraft, GatedCall, ToolResult, TurnIo, UserMessage } from '../providers/adapter.js'
import type { CardReply } from '../contract.js'
import type { PreparedTurn, ToolCaller, WorkingIo } from './environment/environment.js'
import type { Frame, PermissionMode, ToolCategory } from './frames/frames.js'
import { decide } from '../tools/gate.js'
import { tools } from '../tools/tools.js'
import { callOf } from '../subagents/frames.js'
import { Subagents, moved, type SubagentDeps } from '../subagents/subagents.js'
import type { AdapterRun } from './adapter-run.js'
import type { RuledCall, SafetyGate } from './safety-gate.js'
import type { ServerTools } from '../connected-tools/connected-tools.js'
import type { ConnectedTool } from '../../capabilities/contract.js'
import type { FolderInstructions } from '../instructions/project-instructions.js'
import { LiveOutput } from '../outputs/live-output.js'
import { LEAST_READ, limitedResult, MOST_READ } from '../outputs/limited-result.js'
import type { KeepPicture } from '../outputs/pictures.js'
import { failed, type SubagentTools, type TurnWatcher } from '../tools/tool.js'
import type { CallSummary, Toolbox } from '../tools/toolbox.js'
import type { Turn } from './turn.js'

/** The dependencies of an adapter's io. */
export interface TurnIoDeps {
  readonly toolbox: Toolbox
  /** Tools a person allowed for the rest of the conversation. */
  readonly remembered: { names(): ReadonlySet<string>; add(name: string): void }
  readonly subagentDeps: SubagentDeps
  readonly expose: TurnIo['expose']
  /** Called with a name for the conversation; left out: names are dropped. */
  readonly titled?: (text: string) => void
  /** The policy that each call is judged by; left out: there is none. */
  readonly safety?: SafetyGate
  /** The tools of connected servers; left out: there are none. */
  readonly connected?: ServerTools
  /**
   * Keeps the whole text of a long result; returns the path of its file, where there is one. Left out: results stay
   * whole.
   */
  readonly keep?: ((text: string) => Promise<string | undefined>) | undefined
  /** Keeps pictures for models that see; left out: none are shown. */
  readonly picture?: KeepPicture | undefined
  /** What an agent is told of folders that it comes to; left out: nothing. */
  readonly instructed?: (() => FolderInstructions) | undefined
}

/** Calls at a path: the instructions of its folder are told with the first result there. */
const PLACED = new Set<ToolCategory>(['read', 'edit', 'move', 'search'])
const MOST_TARGET = 120
const MOST_STATE = 4 * 1024 * 1024

const ALONE = 'the persona of this turn starts no subagents: its card says so (powers.delegate)'
const ALL_POWERS: TurnPowers = { files: 'write', shell: true, code: true, web: true, delegate: true }

/** The answer for an adapter whose turn has moved or is frozen: it never resolves. */
const never = new Promise<never>(() => {})

/** The engine's side of one adapter in one turn. */
export const turnIo = (turn: Turn, prepared: PreparedTurn, adapterRun: AdapterRun, deps: TurnIoDeps): WorkingIo => {
  const helpers: Subagents = new Subagents({
    ...deps.subagentDeps,
    turn,
    prepared,
    io: worker => workerIo(turn, prepared, adapterRun, deps, helpers, worker),
  })
  return workerIo(turn, prepared, adapterRun, deps, helpers, {
    signal: adapterRun.signal,
    mode: turn.record.mode ?? turn.entry.fields.permissionMode,
    depth: 0,
  })
}

const workerIo = (
  turn: Turn,
  prepared: PreparedTurn,
  adapterRun: AdapterRun,
  { toolbox, remembered, expose, titled, connected, safety, keep, picture, instructed }: TurnIoDeps,
  helpers: Subagents,
  worker: ToolCaller,
): WorkingIo => {
  const { signal, helper } = worker
  let folders = instructed?.()
  let { compactions } = turn.record
  let { mode } = worker
  /** A subagent of an ended adapter is ended by its signal, and reports how. */
  const over = (): boolean => (helper === undefined ? adapterRun.over : turn.frozen)
  const own = (id: string): string => (helper === undefined ? id : callOf(helper, id))
  /** Drops frames of a subagent after its end was written. */
  const push = (frame: Frame): void => {
    if (helper === undefined || turn.record.helpers.isOpen(helper)) turn.log.push(frame)
  }
  const subagentsOf = (id: string): SubagentTools => ({
    delegate: spec => helpers.delegate(spec, id, { ...worker, mode }),
    join: (ids, timeoutMs) => helpers.join(worker, ids, timeoutMs),
  })
  const busy = new Set<Promise<unknown>>()
  const tracked = <T>(work: Promise<T>): Promise<T> => {
    const settled = work
      .catch(ignored('the caller that awaits it gets the failure'))
      .finally(() => busy.delete(settled))
    busy.add(settled)
    return work
  }
  /** An ended adapter would take a result for the end of the call, so it gets none. */
  const unlessOver = async <T>(work: Promise<T>): Promise<T> => {
    const value = await work
    return over() ? never : value
  }

  const raise = async (draft: CardDraft, holds?: string, kept = false): Promise<CardReply | undefined> => {
    if (over()) return never
    const waits = holds === undefined ? {} : { holds, kept }
    if (helper !== undefined) return asHelper(draft, { ...waits, helper })
    const reply =
      (holds !== undefined && (kept ? turn.keptAnswer(holds) : await turn.takeAnswer(holds)))
      || (await adapterRun.parked(turn.raise(draft, waits)))
    return over() ? never : reply
  }

  /** Opens a card of a subagent as one of the turn's. */
  const asHelper = async (
    draft: CardDraft,
    waits: { holds?: string; helper: string },
  ): Promise<CardReply | undefined> => {
    if (signal.aborted || !turn.message.attended) return undefined
    const { helper: id } = waits
    push({ kind: 'subagent_update', id, status: 'blocked' })
    const reply = await adapterRun.parked(turn.raise(draft, waits))
    if (turn.frozen) return never
    if (!signal.aborted) push({ kind: 'subagent_update', id, status: 'running' })
    return reply
  }

  const modeNow = (): PermissionMode => turn.record.mode ?? turn.entry.fields.permissionMode

  const permit = async (
    call: GatedCall,
    powers: TurnPowers | undefined = prepared.persona?.powers,
    foreign?: ConnectedTool,
  ): Promise<string | undefined> => {
    const verdict = decide(call, {
      mode: modeNow(),
      remembered: remembered.names(),
      attended: turn.message.attended,
      ...(prepared.allowedTools && { allowedTools: prepared.allowedTools }),
      ...(powers && { powers }),
    })
    if (verdict.verdict === 'refuse') return verdict.reason
    const ruled: RuledCall = {
      call,
      persona: prepared.persona?.id,
      foreign: foreign !== undefined,
      action: foreign && actionOf(foreign),
    }
    const ruling = await safety?.rule(turn, ruled)
    if (over()) return never
    if (ruling?.verdict === 'refuse') return ruling.reason
    if (safety && ruling?.verdict === 'ask') {
      const reply = await raise(ruling.card, digestOf(call))
      await safety.answered(turn, ruled, ruling.held, reply)
      return refusalIn(reply)
    }
    if (verdict.verdict === 'go') return undefined
    const reply = await raise(verdict.card, digestOf(call))
    if (reply?.kind === 'permission' && reply.decision === 'always') remembered.add(call.name)
    return refusalIn(reply)
  }

  const setMode = (to: PermissionMode): void => {
    if (over()) return
    mode = to
    if (helper === undefined) turn.log.push({ kind: 'mode', mode: to })
  }

  const person: TurnWatcher = {
    attends: turn.message.attended,
    // After a restart the call is repeated, and takes the stored answer.
    ask: (card, about) => raise(card, digestOf(about ?? card), about !== undefined),
    approved: () => setMode(mode === 'plan' ? 'bypassPermissions' : mode),
  }

  const refused = (id: string, reason: string): ToolResult => {
    push({ kind: 'tool_call_update', id, status: 'failed', content: [{ type: 'text', text: reason }] })
    return { ok: false, content: [{ type: 'text', text: reason }], text: reason }
  }

  /** What was told of folders may be left out of a session that was made shorter since: it is told again. */
  const foldersNow = (): FolderInstructions | undefined => {
    if (helper !== undefined || compactions === turn.record.compactions) return folders
    compactions = turn.record.compactions
    return (folders = instructed?.())
  }

  const tool = async (name: string, input: object, id: string, asked = MOST_READ): Promise<ToolResult> => {
    // Asks the servers for their tools only when one of these is called.
    const foreign = connected && !Object.hasOwn(tools, name) ? await connected.find(name) : undefined
    const face: CallSummary | { refused: string } = foreign ? faceOf(foreign, input) : toolbox.face(name, input)
    const known = turn.record.openTools.some(call => call.id === id)
    const unknown = 'refused' in face
    const { category, target, locations, ...shown } = unknown ? ({ category: 'other' as const } as CallSummary) : face
    if (!known) {
      push({
        kind: 'tool_call',
        id,
        name,
        category,
        status: 'pending',
        ...(target && { target: target.slice(0, 200) }),
        ...(locations && { locations }),
        ...(helper !== undefined && { parentToolUseId: helper }),
      })
      if (helper !== undefined) push(moved(turn, helper, name))
    }
    if (unknown) return refused(id, face.refused)
    const judged = foreign ? judgedAs(foreign, modeNow()) : category
    // A persona's card names servers, not tools; tools of other servers are not found here.
    const powers = foreign ? ALL_POWERS : undefined
    const reason = await permit({ id, name, category: judged, ...shown, input }, powers, foreign)
    if (signal.aborted) return refused(id, adapterRun.left ? adapterRun.excuse : 'stopped')
    if (reason !== undefined) return refused(id, reason)
    push({ kind: 'tool_call_update', id, status: 'in_progress' })
    const progress = (text: string): void => {
      if (turn.record.openTools.some(call => call.id === id))
        push({ kind: 'tool_call_update', id, content: [{ type: 'text', text }] })
    }
    // Written first, so that after a crash the log names files that may be half-written.
    if (locations) await turn.log.settled()
    const most = Math.max(LEAST_READ, Math.min(asked, MOST_READ))
    const live = new LiveOutput(turn.masker, progress)
    const came = foreign
      ? await calledOutside(
          connected!.call(foreign, input, {
            ...{ signal, ask: card => raise(card), progress, show: push, picture },
            pay: async (payment, nth) => {
              // What an extension wants paid is content from outside, so the smallest sum waits for a yes.
              await turn.markOutside(`${foreign.server} ${foreign.name}`.slice(0, 200))
              return tool('Pay', payment, `${id}.pay-${nth}`)
            },
          }),
          signal,
        )
      : await toolbox
          .run(name, input, signal, {
            ...{ call: id, person, subagents: subagentsOf(id), most },
            onOutput: (text: string) => live.add(text),
            ...(picture && { picture }),
          })
          .finally(() => live.end())
    // By what is stored now: a value may be new since the call began.
    const whole = turn.masker.maskJson(came)
    const limited = keep ? await limitedResult(whole, most, keep) : whole
    const place = limited.ok && !foreign && PLACED.has(category) ? shown.path : undefined
    const instructions = place === undefined ? undefined : await foldersNow()?.toldAt(place, most / 2)
    const told = instructions === undefined ? '' : turn.masker.mask(instructions)
    const result = { ...limited, text: limited.text + told }
    // The turn has closed the call already.
    if (!turn.record.openTools.some(call => call.id === id)) return result
    if (adapterRun.left && !result.ok) return refused(id, adapterRun.excuse)
    push({ kind: 'tool_call_update', id, status: result.ok ? 'completed' : 'failed', content: result.content })
    adapterRun.rest()
    return result
  }

  /** Whether a call is open, or a subagent runs in the background. */
  const inHand = (): boolean => busy.size > 0 || turn.record.helpers.open.length > 0

  /** Waits for messages; without open calls that is a gap too. */
  const waitWords = async (ms?: number): Promise<UserMessage | undefined> => {
    const words = await turn.words.next(inHand() ? signal : AbortSignal.any([signal, adapterRun.leaving]), ms)
    if (!words && !inHand() && adapterRun.leaving.aborted) adapterRun.cut()
    return words
  }

  const gap = async (ms = 0): Promise<boolean> => {
    const own = helper === undefined
    if (ms > 0)
      await delay(ms, undefined, { signal: own ? AbortSignal.any([signal, adapterRun.leaving]) : signal }).catch(
        ignored('the wait was cut short'),
      )
    if (over()) return never
    return own && !inHand() && !signal.aborted && adapterRun.gap()
  }

  return {
    signal,
    // Moves and messages happen between the calls of the turn's own agent.
    gap,
    takeWords: () => (helper !== undefined || over() ? [] : turn.words.take()),
    waitWords: async ms => (helper === undefined ? unlessOver(waitWords(ms)) : undefined),
    raise: card => raise(card),
    tool: (name, input, id, most) => (over() ? never : unlessOver(tracked(tool(name, input, own(id), most)))),
    helper: (spec, id) => {
      if (over()) return never
      if (prepared.persona?.powers.delegate === false) return Promise.resolve({ status: 'failed', summary: ALONE })
      return unlessOver(tracked(helpers.delegate(spec, own(id), { ...worker, mode })))
    },
    permit: call =>
      over()
        ? never
        : unlessOver(
            tracked(
              permit(call).then(reason =>
                reason === undefined
                  ? { allow: !signal.aborted, always: remembered.names().has(call.name) }
                  : { allow: false, reason },
              ),
            ),
          ),
    offered: async () => {
      const { allowedTools } = prepared
      const foreign = (await connected?.offered()) ?? []
      for (const text of connected?.takeProblems() ?? [])
        push({ kind: 'notice', level: 'warning', text, source: 'capabilities' })
      const { attended } = turn.message
      return [
        ...(await toolbox.offered(allowedTools)).filter(({ name }) => attended || !ASKING_TOOLS.has(name)),
        ...foreign.filter(tool => !allowedTools || allowedTools.includes(tool.name)),
      ]
    },
    expose,
    walled: program => toolbox.walled(program),
    shared: program => toolbox.shared(program),
    stamp: path => toolbox.stamp(path),
    state: async value => {
      if (over()) return never
      // A subagent is not resumed after a restart.
      if (helper !== undefined) return undefined
      const json = JSON.stringify(value)
      if (json.length > MOST_STATE)
        refuse('too-large', `state: expected at most ${MOST_STATE} bytes, found ${json.length}`)
      await turn.log.settled()
      if (adapterRun.over) return never
      const answered = (turn.entry.fields.answered ?? []).filter(({ holds }) => holds)
      await turn.entry.change({ state: value, stateSeq: turn.log.seq, unheard: [...turn.words.left], answered })
      failpoint('agent.turn.saved')
      if (adapterRun.over) return never
    },
    mode: setMode,
    // The session of a subagent is not the conversation.
    title: text => void (helper === undefined && !over() && titled?.(text)),
    idle: async () => {
      await helpers.end(helper)
      await Promise.all(busy)
    },
  }
}

/** Why a call does not run after this answer; undefined: it runs. */
const refusalIn = (reply: CardReply | undefined): string | undefined => {
  if (reply?.kind !== 'permission') return 'nobody answered'
  if (reply.decision !== 'deny') return undefined
  return reply.feedback ? `a person said no: ${reply.feedback}` : 'a person said no'
}

/** A digest of a call without its id, the same for the same tool and input. */
const digestOf = (call: object): string => hash('sha256', JSON.stringify({ ...call, id: undefined }))

/** How a call of a connected tool is shown: its input on one line. */
const faceOf = ({ title, name, server }: ConnectedTool, input: object): CallSummary => ({
  category: 'other',
  target: `${server}: ${title ?? name} ${JSON.stringify(input).slice(0, MOST_TARGET).toWellFormed()}`,
})

/**
 * The category by which the gate judges a connected tool: in plan mode one that may change something waits for
 * approval.
 */
const judgedAs = ({ readOnly, approve }: ConnectedTool, mode: PermissionMode): ToolCategory => {
  if (mode === 'plan' && !readOnly) return 'edit'
  return approve ? 'other' : 'read'
}

/** The action that a person can allow later in place of a call of a tool; undefined: it only reads. */
const actionOf = ({ server, name, readOnly, action }: ConnectedTool): RuledCall['action'] => {
  if (readOnly) return undefined
  if (server.startsWith('extension:')) return { key: `${server.slice('extension:'.length)}.${name}` }
  return action === undefined ? undefined : { key: action, capability: server }
}

/** Converts refusals and failures of a server into a failed result. */
const calledOutside = async (call: Promise<ToolResult>, signal: AbortSignal): Promise<ToolResult> => {
  try {
    return await call
  } catch (error) {
    return failed(signal.aborted ? 'stopped' : Refusal.from(error).message)
  }
}
