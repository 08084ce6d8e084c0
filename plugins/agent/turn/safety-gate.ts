import type { Host } from '../../../sdk/index.js'
import type { CommandClass } from '../../settings/contract.js'
import type { SafetySubject } from '../../safety/contract.js'
import type { GatedCall } from '../providers/adapter.js'
import { askAbout, type PermissionDraft } from '../tools/gate.js'
import type { CardReply } from '../contract.js'
import type { Turn } from './turn.js'

/** What the policy says about a call. */
export type SafetyRuling =
  | { readonly verdict: 'go' }
  | { readonly verdict: 'refuse'; readonly reason: string }
  | { readonly verdict: 'ask'; readonly card: PermissionDraft; readonly held: HeldCall }

/** A call that waits for a person. */
export interface HeldCall {
  readonly id: string
  readonly classes: readonly CommandClass[]
}

/** A call with what the gate knows of its turn. */
export interface RuledCall {
  readonly call: GatedCall
  readonly persona?: string | undefined
  /** It is a tool of a connected server or an extension. */
  readonly foreign?: boolean
  /** The action that a tool which may change something is: a person can allow it later. */
  readonly action?: { readonly key: string; readonly capability?: string } | undefined
}

type HeldAction = NonNullable<RuledCall['action']>

const GO: SafetyRuling = { verdict: 'go' }
const MOST_TEXT = 20_000
const NO_WAY_ROUND = 'Do not look for a way round it: go on without it, or say what is needed and why.'

/** Asks the safety policy about the calls of turns; without one every call goes on. */
export class SafetyGate {
  readonly #host: Pick<Host, 'call' | 'serves' | 'log'>
  /** The classes that a person allowed for the rest of a turn. */
  readonly #allowed = new WeakMap<Turn, Set<CommandClass>>()

  constructor(host: Pick<Host, 'call' | 'serves' | 'log'>) {
    this.#host = host
  }

  /** Whether there is a policy, which must see each call. */
  rules(): Promise<boolean> {
    return this.#host.serves('safety.decide')
  }

  /** What the policy says about a call. */
  async rule(turn: Turn, ruled: RuledCall): Promise<SafetyRuling> {
    const { call, foreign = false, action } = ruled
    const subject = subjectOf(call, foreign)
    if (!subject || !(await this.rules())) return GO
    const { message } = turn
    let decided = await this.#decided(turn, ruled, subject)
    let files = action !== undefined && !message.attended
    if (action !== undefined && decided.verdict !== 'deny') {
      const asAction = await this.#decided(turn, ruled, actionSubject(call, action.key))
      if (asAction.verdict !== 'allow') [decided, files] = [asAction, true]
    }
    const { verdict, classes, id, message: told = decided.reason } = decided
    if (verdict === 'allow') {
      if (isOutside(call, classes, foreign)) await turn.markOutside(sourceOf(call))
      return GO
    }
    if (verdict === 'deny')
      return { verdict: 'refuse', reason: `the safety policy refuses this: ${told}. ${NO_WAY_ROUND}` }
    if (files && action !== undefined) {
      const filed = await this.#filed(turn, call, action)
      if (filed !== undefined) {
        const waits = `It waits for a person's yes as the approval ${filed}, and is then done by itself`
        return { verdict: 'refuse', reason: `the safety policy holds this: ${told}. ${waits}. ${NO_WAY_ROUND}` }
      }
    }
    if (!message.attended || id === undefined)
      return {
        verdict: 'refuse',
        reason: `the safety policy holds this, and nobody watches this turn: ${told}. ${NO_WAY_ROUND}`,
      }
    const allowed = this.#allowed.get(turn)
    if (classes.length > 0 && classes.every(one => allowed?.has(one))) {
      await this.#settle(id, 'approved')
      return GO
    }
    const asked = askAbout(call, {
      reason: `the safety policy holds it: ${decided.reason}`,
      ...(classes.length > 0 && { alwaysLabel: `Allow ${classes.join(', ')} for the rest of this turn` }),
      other: `Use ${call.name}`,
    })
    return asked.verdict === 'ask' ? { ...asked, held: { id, classes } } : asked
  }

  async #decided({ conversationId, run, message, outside }: Turn, { persona }: RuledCall, subject: SafetySubject) {
    return this.#host.call('safety.decide', {
      subject,
      context: {
        conversationId,
        run,
        unattended: !message.attended,
        ...(persona !== undefined && { persona }),
        ...(outside !== undefined && { outside }),
      },
    })
  }

  /** Files a held call for a person to allow; undefined: it could not be filed. */
  async #filed(
    { conversationId, run }: Turn,
    { input }: GatedCall,
    { key, capability }: HeldAction,
  ): Promise<string | undefined> {
    if (!(await this.#host.serves('approvals.file'))) return undefined
    const action = {
      ...{ key, summary: `Use the tool ${key}`.slice(0, 500), args: input as { [name: string]: unknown } },
      ...(capability !== undefined && { capability }),
    }
    try {
      return (await this.#host.call('approvals.file', { kind: 'action', action, conversationId, run })).id
    } catch (error) {
      this.#host.log.warn('filing a held call failed', { key, error: String(error) })
      return undefined
    }
  }

  /** Notes the answer to a call that was held. */
  async answered(
    turn: Turn,
    { call, foreign = false }: RuledCall,
    held: HeldCall,
    reply: CardReply | undefined,
  ): Promise<void> {
    if (turn.frozen) return
    if (reply?.kind !== 'permission') return this.#settle(held.id, 'refused')
    if (reply.decision === 'deny') return this.#settle(held.id, 'declined', byOf(turn, reply))
    if (reply.decision === 'always') {
      const known = this.#allowed.get(turn) ?? new Set()
      this.#allowed.set(turn, known)
      for (const one of held.classes) known.add(one)
    }
    await this.#settle(held.id, 'approved', byOf(turn, reply))
    if (isOutside(call, held.classes, foreign)) await turn.markOutside(sourceOf(call))
  }

  async #settle(id: string, outcome: 'approved' | 'declined' | 'refused', answeredBy?: string): Promise<void> {
    await this.#host
      .call('safety.settle', { id, outcome, ...(answeredBy !== undefined && { answeredBy }) })
      .catch(error => this.#host.log.error('noting what became of a held call failed', { id, error: String(error) }))
  }
}

/** What the policy decides about a call; undefined: nothing of it is to be decided. */
const subjectOf = (
  { name, command, code, url, path, category }: GatedCall,
  foreign: boolean,
): SafetySubject | undefined => {
  const subject = (kind: SafetySubject['kind'], text: string): SafetySubject | undefined =>
    text === '' ? undefined : { kind, text: text.slice(0, MOST_TEXT).toWellFormed() }
  if (command !== undefined) return subject('command', command)
  if (code !== undefined) return subject('script', code)
  if (url !== undefined) return subject('host', URL.parse(url)?.hostname ?? url)
  if (foreign) return subject('tool', name)
  if (path !== undefined && category !== 'search') return subject('path', path)
  return undefined
}

/** A call of a tool of a server or an extension as an action: its key is `<provider>.<type>`. */
const actionSubject = ({ name, input }: GatedCall, key: string): SafetySubject => {
  const dot = key.indexOf('.')
  const text = (JSON.stringify(input) ?? name).slice(0, MOST_TEXT).toWellFormed()
  return { kind: 'action', provider: key.slice(0, dot).slice(0, 60), type: key.slice(dot + 1).slice(0, 60), text }
}

/** Who answered a card. */
const byOf = (turn: Turn, { requestId }: CardReply): string | undefined => turn.record.card(requestId)?.resolved?.by

/** Says itself when it has read something: whether its payment needs a person's yes depends on what came before. */
const PAYING = 'Pay'

/** Whether a call brings content from outside into the turn. */
const isOutside = ({ name, url }: GatedCall, classes: readonly CommandClass[], foreign: boolean): boolean =>
  (url !== undefined && name !== PAYING) || foreign || classes.includes('network.outbound')

const sourceOf = ({ name, url, command }: GatedCall): string =>
  (url
    ? `${name} ${URL.parse(url)?.host ?? url}`
    : command === undefined
      ? name
      : `a command that makes requests`
  ).slice(0, 200)
