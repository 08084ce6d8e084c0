import type { EndpointChoice, EndpointTarget } from '../../../endpoints/contract.js'
import { Refusal } from '../../../../sdk/index.js'
import type { Abilities, ProviderAdapter, TurnIo, TurnRequest } from '../adapter.js'
import type { Command } from '../../contract.js'
import type { Frame, ProviderId } from '../../turn/frames/frames.js'
import { ServerFault, withoutSecrets } from './faults.js'
import type { NativeDeps, NativeTurn } from './native-turn.js'
import { failTurn, NativeOver } from './over.js'
import { nativeSessionOf } from './session.js'
import type { NativeTarget } from './target.js'

/** A provider whose turns run in the sandbox's own tool loop over a model server. */
export interface NativeProvider {
  readonly id: ProviderId
  readonly label: string
  readonly models: readonly string[]
  /** Needs no network. */
  readonly local?: boolean
  /** Can be asked to answer faster. */
  readonly fast?: boolean
  /** The current address and settings of the server, for one turn. */
  target(request: TurnRequest): Promise<NativeTarget>
}

const COMMANDS: readonly Command[] = [
  { name: 'compact', description: 'Replace earlier messages by a summary, to save room', hint: 'what to keep' },
]

/** The shortcuts of a turn: those of the loop, then those that came with the code. */
export const shownCommands = (commands: NonNullable<TurnRequest['commands']>): Command[] => [
  ...COMMANDS,
  ...commands
    .filter(({ name }) => !COMMANDS.some(own => own.name === name))
    .map(({ name, description, hint }) => ({ name, description, ...(hint !== undefined && { hint }) })),
]

/** Runs turns of a model server with the sandbox's own tools. */
export const nativeAdapter = (provider: NativeProvider, deps: NativeDeps): ProviderAdapter => {
  const { id, label, models, local = false, fast = false } = provider
  const abilities: Abilities = {
    words: true,
    permissions: 'modes',
    questions: true,
    commands: true,
    terminals: true,
    state: true,
    offline: local,
    fast,
  }
  return {
    id,
    label,
    harnesses: ['native'],
    ownHarness: 'native',
    models,
    commands: COMMANDS,
    ofTree: true,
    abilities: () => abilities,
    run: (request, io) => run(provider, deps, request, io),
  }
}

/** The adapter of a model server that the user entered. */
export const endpointAdapter = (
  { id, label, models, fast = false }: EndpointChoice,
  target: (id: string) => Promise<EndpointTarget>,
  deps: NativeDeps,
): ProviderAdapter =>
  nativeAdapter(
    { id: `endpoint/${id}`, label, fast, models: models.map(model => model.id), target: () => target(id) },
    deps,
  )

async function* run(
  provider: NativeProvider,
  deps: NativeDeps,
  request: TurnRequest,
  io: TurnIo,
): AsyncGenerator<Frame, void> {
  let turn: NativeTurn | undefined
  let failure: NativeOver['failure']
  let target: NativeTarget | undefined
  let stopped = true
  try {
    target = await targetOf(provider, request)
    yield* opening(provider.id, request, request.model || target.default, target.account)
    // Loaded with the first turn, so that the daemon starts faster.
    const { NativeTurn } = await import('./native-turn.js')
    turn = new NativeTurn(provider.id, target, deps, request, io)
    for await (const frame of turn.work()) yield withoutKeys(frame, target)
    stopped = false
  } catch (error) {
    if (error instanceof NativeOver) {
      if (error.why === 'moved') return
      failure = error.failure
    } else if (error instanceof ServerFault) {
      const { code } = error.details
      failure = { message: error.message, ...(code && { code }) }
    } else if (!io.signal.aborted) throw error
    failure &&= { ...failure, message: withoutSecrets(failure.message, target?.headers ?? {}) }
  } finally {
    target?.over?.(failure, stopped)
  }
  yield* turn?.end() ?? []
  if (failure && !io.signal.aborted) yield { kind: 'error', ...failure }
}

/** Servers repeat in their words what they were sent. */
const withoutKeys = (frame: Frame, { headers }: NativeTarget): Frame =>
  frame.kind === 'provider_retry' && frame.message !== undefined
    ? { ...frame, message: withoutSecrets(frame.message, headers) }
    : frame

const targetOf = async ({ label, target }: NativeProvider, request: TurnRequest): Promise<NativeTarget> => {
  const { model } = request
  const found = await target(request).catch((error: unknown) => {
    if (error instanceof Refusal) return failTurn(`${label} cannot be used: ${error.message}`)
    throw error
  })
  if (found.problem !== undefined) failTurn(`${label} cannot be used now: ${found.problem}`)
  return model || found.default ? found : failTurn(`${label} has no model: name one`, 'model-invalid')
}

/** Frames at the start of a turn, except those that an earlier attempt wrote. */
function* opening(
  provider: ProviderId,
  { conversationId, harness, state, resume, since = [], commands, depth }: TurnRequest,
  model: string,
  account?: string,
): Generator<Frame> {
  const reason = resume?.reason
  const here = since.slice(since.findLastIndex(({ kind }) => kind === 'switched') + 1)
  const lacks = (kind: Frame['kind']): boolean => !here.some(frame => frame.kind === kind)
  const anew = state === undefined || reason === 'outage'
  if (anew && lacks('session')) yield { kind: 'session', sessionId: nativeSessionOf(conversationId) }
  if ((anew || reason === 'switched') && lacks('init'))
    yield { kind: 'init', model, provider, harness, ...(account !== undefined && { account }) }
  if (anew && commands && depth === 0 && lacks('commands')) yield { kind: 'commands', items: shownCommands(commands) }
}
