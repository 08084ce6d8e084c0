import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { refuse, Refusal, type Caller, type Context, type Handlers, type Host } from '../../sdk/index.js'
import { accessViewFor } from '../../sdk/node/access/asked-reach.js'
import { accessToConversation, ofCaller, refuseUnknown } from '../../sdk/node/access/conversation-reach.js'
import { limitsOf, refuseReading } from '../../sdk/node/access/access-view.js'
import { assertNoValues } from '../../sdk/node/access/value-masker.js'
import { sendPush } from '../../sdk/node/push/send-push.js'
import { promptWords } from '../../sdk/node/push/words.js'
import type { Access } from '../../sdk/reach.js'
import type { Conversation } from '../agent/contract.js'
import { checkedAnswers, storedAnswers } from './answers.js'
import type { Need, NeedAnswers, NeedInput, NeedStatus, NeedsCalls } from './contract.js'
import type { Needs } from './needs.js'
import { isOpen, takesSecret, type StoredNeed } from './stored-need.js'

const STATUSES = new Set<string>(['open', 'given', 'declined', 'withdrawn', 'expired'] satisfies NeedStatus[])
const LISTED = 100
const LAND = 'POST /agents/{id}/land'

const unknown = (id: string): never => refuse('not-found', `there is no need ${JSON.stringify(id.slice(0, 64))}`)

/** What a caller may do with the needs of conversations, each looked up once. */
const accessOf = (host: Host, caller: Caller) => {
  const known = new Map<string, Promise<Access | undefined>>()
  const look = async (conversationId: string): Promise<Access | undefined> => {
    if (limitsOf(caller) === undefined) return 'work'
    const [state, seen] = await Promise.all([stateOf(host, conversationId), accessViewFor(host, caller)])
    return state && accessToConversation(seen, state.conversation)
  }
  return ({ conversationId }: Pick<StoredNeed, 'conversationId'>): Promise<Access | undefined> => {
    const access = known.get(conversationId) ?? look(conversationId)
    known.set(conversationId, access)
    return access
  }
}

/** A conversation with its live turn; undefined: there is none. */
export const stateOf = (host: Pick<Host, 'call'>, id: string) =>
  host.call('agent.conversation', { id }).catch((error: unknown) => {
    if (Refusal.from(error).reason === 'not-found') return undefined
    throw error
  })

/** The cards of the catalogue of connections. */
export const cardsOf = async (host: Pick<Host, 'call' | 'serves'>) =>
  (await host.serves('GET /capabilities/catalog')) ? (await host.call('GET /capabilities/catalog')).cards : []

const isMaintainer = ({ kind, role }: Caller): boolean =>
  kind === 'session' && (role === 'maintainer' || role === 'owner')

/** Why a caller may not give what is needed; undefined: it may. */
const withheld = (caller: Caller, need: StoredNeed, access: Access): string | undefined => {
  if (!isOpen(need)) return `it is ${need.status} already`
  if (caller.kind === 'turn') return 'a person gives it'
  if (caller.kind === 'token' ? caller.scope === 'read' : caller.role === 'viewer') return 'it takes a collaborator'
  if (access === 'read') return 'it lies in an area that you may only read'
  return takesSecret(need) && !isMaintainer(caller) ? 'only a maintainer may store secrets' : undefined
}

/** A need as a caller sees it. */
const shownTo = (caller: Caller, need: StoredNeed, access: Access): Need => {
  const { marks: _marks, quiet: _quiet, byOthers: _byOthers, message: _message, toldIn: _toldIn, ...rest } = need
  const reason = withheld(caller, need, access)
  return { ...rest, allowed: { give: reason === undefined, ...(reason !== undefined && { reason }) } }
}

/** Refuses an input whose parts do not fit together. */
const assertFits = ({ kind, fields = [], expiresAt }: NeedInput): void => {
  const wrong = (path: string, expected: string, found: string) =>
    refuse('invalid', `${path}: expected ${expected}, found ${found}`, { errors: [{ path, expected, value: found }] })
  const keys = new Set<string>()
  for (const [at, { key, type, options, secretKey }] of fields.entries()) {
    if (keys.has(key)) wrong(`fields[${at}].key`, 'a key of its own', `${key} twice`)
    keys.add(key)
    if (type === 'choice' && !options) wrong(`fields[${at}].options`, 'what can be chosen', 'none')
    if (type === 'secret' && secretKey === undefined)
      wrong(`fields[${at}].secretKey`, 'the name to store it under', 'none')
  }
  if (kind === 'secret' && !fields.some(({ type }) => type === 'secret'))
    wrong('fields', 'a field of type secret', fields.map(({ type }) => type).join(', ') || 'none')
  if (expiresAt !== undefined && expiresAt <= Date.now())
    refuse('unprocessable', 'expiresAt: expected a time in the future, found one that has passed')
}

/** Serves the calls of the group. */
export const needsCalls = (host: Host, needs: Needs, markKey: string): Handlers<NeedsCalls> => {
  const mark = (text: string) => createHmac('sha256', markKey).update(text).digest('base64url')

  /** A need and the caller's access to it; refuses one that the caller may not see, or with `works` not settle. */
  const seen = async (id: string, caller: Caller, works: boolean) => {
    const need = needs.get(id)
    const access = await accessOf(host, caller)(need)
    if (access === undefined) return unknown(id)
    if (works && access === 'read') refuseReading(id)
    return { need, access }
  }

  const assertKnown = async ({ kind, card }: NeedInput): Promise<void> => {
    if (kind === 'account')
      refuse('unavailable', 'this sandbox keeps no accounts yet: ask for a capability, a secret or hands')
    if (card === undefined) return
    if (!(await cardsOf(host)).some(({ id }) => id === card))
      refuse('unprocessable', `card: expected a card of the catalogue, found ${JSON.stringify(card)}`)
  }

  /** Marks words that are not those of a person who may land; those of a turn are the conversation's own. */
  const byOthers = async (context: Context): Promise<Pick<StoredNeed, 'byOthers'>> => {
    const { kind } = context.caller
    if (kind === 'turn') return {}
    if (kind !== 'session' && kind !== 'token') return { byOthers: true }
    const { admits } = await host.call('kernel.access.admits', { call: LAND }, { as: context })
    return admits ? {} : { byOthers: true }
  }

  const raise = async (input: NeedInput, by: string, run?: string, context?: Context) => {
    assertFits(input)
    const { conversationId: _id, ...words } = input
    await assertNoValues(host, words)
    await assertKnown(input)
    const state = await stateOf(host, input.conversationId)
    const { title = undefined } = state?.conversation ?? refuseUnknown(input.conversationId)
    const from = run ?? state?.live?.run
    const id = `n-${randomUUID().replaceAll('-', '').slice(0, 20)}`
    const need = await needs.raise(
      input,
      {
        ...{ id, raisedBy: by },
        ...(from !== undefined && { run: from }),
        ...(title !== undefined && { conversationTitle: title }),
        ...(context && (await byOthers(context))),
      },
      context,
    )
    // People were told of one that was raised before.
    if (need.id === id) tell(need, state?.conversation)
    return need
  }

  const tell = (need: StoredNeed, conversation: Conversation | undefined): void => {
    const { conversationId, title } = need
    const about = { moment: 'stuck', conversationId, text: promptWords(title), maintainers: takesSecret(need) } as const
    const startedBy = conversation?.lastBy
    void sendPush(host, { ...about, ...(startedBy !== undefined && { startedBy }) }, conversation)
  }

  const assertConnected = async ({ kind, card }: StoredNeed): Promise<void> => {
    if (kind !== 'capability' || card === undefined) return
    const found = (await cardsOf(host)).find(({ id }) => id === card)
    if (found && !found.connected)
      refuse('conflict', `${card} is not connected yet: connect it, and the need is settled by itself`)
  }

  /** Whether these answers were given before; secrets are compared by their keyed hashes. */
  const isRepeated = ({ status, fields, answers = {}, marks = {} }: StoredNeed, given: NeedAnswers): boolean => {
    if (status !== 'given') return false
    const same = fields.every(({ key, type, secretKey }) => {
      if (type !== 'secret') return isDeepStrictEqual(answers[key], given[key])
      if (given[key] === undefined) return answers[key] === undefined
      const [one, other] = [marks[key] ?? '', mark(`${secretKey} ${String(given[key])}`)]
      return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))
    })
    return same && Object.keys(given).every(key => fields.some(field => field.key === key))
  }

  const answered = (caller: Caller, need: StoredNeed, access: Access) => ({
    need: shownTo(caller, need, access),
    ...(need.continued !== undefined && { run: need.continued }),
  })

  return {
    'GET /needs': async ({ status = 'open', conversationId, kind, limit = LISTED, before = Infinity }, { caller }) => {
      const wanted = new Set(status.split(',').map(each => each.trim()))
      for (const each of wanted)
        if (!STATUSES.has(each))
          refuse('invalid', `status: expected some of ${[...STATUSES].join(', ')}, found ${JSON.stringify(each)}`)
      const access = accessOf(host, caller)
      const found: Need[] = []
      let open = 0
      for (const need of needs.all) {
        const own = await access(need)
        if (own === undefined) continue
        if (isOpen(need)) open += 1
        const fits =
          wanted.has(need.status)
          && need.raisedAt < before
          && (conversationId === undefined || need.conversationId === conversationId)
          && (kind === undefined || need.kind === kind)
        if (fits && found.length < limit) found.push(shownTo(caller, need, own))
      }
      return { needs: found, open }
    },
    'GET /needs/{id}': async ({ id }, { caller }) => {
      const { need, access } = await seen(id, caller, false)
      return shownTo(caller, need, access)
    },
    'POST /needs': async (input, context) => {
      const { caller } = context
      ofCaller(caller, input.conversationId)
      const access = await accessOf(host, caller)(input)
      if (access === undefined) return refuseUnknown(input.conversationId)
      if (access === 'read') refuseReading(input.conversationId)
      return shownTo(caller, await raise(input, caller.actor, undefined, context), access)
    },
    'POST /needs/{id}/give': async ({ id, answers = {}, note, continue: goesOn = true }, context) => {
      const { caller } = context
      const { access } = await seen(id, caller, true)
      const view = await accessViewFor(host, caller)
      return needs.with(id, async (need, settle) => {
        if (isRepeated(need, answers)) return answered(caller, need, access)
        if (!isOpen(need)) refuse('conflict', `the need is ${need.status} already, by ${need.settledBy}`)
        const given = need.fields.filter(({ key }) => Object.hasOwn(answers, key))
        if (given.some(({ type }) => type === 'secret') && !isMaintainer(caller))
          refuse('forbidden', 'only a maintainer in a session may store secrets: ask one to give it')
        await checkedAnswers(need.fields, answers, view, host.place.workspace)
        await assertConnected(need)
        const stored = await storedAnswers(host, need.fields, answers, context)
        const secrets = given.filter(({ type }) => type === 'secret')
        const marks = secrets.map(({ key, secretKey }) => [key, mark(`${secretKey} ${String(answers[key])}`)])
        const settled = await settle(
          {
            ...{ status: 'given', by: caller.actor, answers: stored, quiet: !goesOn },
            ...(note !== undefined && { note }),
            ...(marks.length > 0 && { marks: Object.fromEntries(marks) as { [key: string]: string } }),
            ...(await byOthers(context)),
          },
          context,
        )
        return answered(caller, settled, access)
      })
    },
    'POST /needs/{id}/decline': async ({ id, reason, continue: goesOn = true }, context) => {
      const { caller } = context
      const { access } = await seen(id, caller, true)
      return needs.with(id, async (need, settle) => {
        if (!isOpen(need)) refuse('conflict', `the need is ${need.status} already, by ${need.settledBy}`)
        const how = { status: 'declined', by: caller.actor, quiet: !goesOn } as const
        return answered(
          caller,
          await settle(
            { ...how, ...(reason !== undefined && { note: reason }), ...(await byOthers(context)) },
            context,
          ),
          access,
        )
      })
    },
    'needs.ask': async ({ run, ...input }) => ({
      id: (await raise(input, `conversation:${input.conversationId}`, run)).id,
    }),
    'needs.withdraw': async ({ id, conversationId }) => {
      const need = needs.get(id)
      if (need.conversationId !== conversationId || !isOpen(need)) return unknown(id)
      await needs.settle(id, { status: 'withdrawn', by: `conversation:${conversationId}` })
      return { ok: true }
    },
    'needs.forTurn': async ({ conversationId, run }) => needs.forTurn(conversationId, run),
    'needs.open': ({ conversationId }) => ({ ids: needs.blocking(conversationId) }),
    'needs.counts': () => ({ open: needs.counts }),
  }
}
