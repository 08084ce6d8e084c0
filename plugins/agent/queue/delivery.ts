import { refuse, ignored } from '../../../sdk/index.js'
import type { Caller } from '../../../sdk/index.js'
import {
  accessToConversation,
  assertVisible,
  reachesAll,
  refuseUnknown,
  worksEverywhere,
} from '../../../sdk/node/access/conversation-reach.js'
import { refuseReading, type AccessView } from '../../../sdk/node/access/access-view.js'
import { isFull } from '../../../sdk/node/files/disk.js'
import { canAnswerCards, assertReaches, mayReach, type Sender } from '../conversations/access.js'
import type { Conversation, Started, TurnInput } from '../contract.js'
import type { Conversations } from '../conversations/conversations.js'
import type { Engine } from '../turn/engine.js'
import type { Beginning, Forks } from '../conversations/forks.js'
import type { WearCard } from '../personas/messages.js'
import type { QueuedWhy } from '../turn/frames/frames.js'
import type { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { firstLineOf } from '../first-line.js'
import { notesOf, preambleOf } from '../turn/preamble.js'
import type { Providers } from '../providers/providers.js'
import { minted } from '../minted.js'
import type { LedgerRow } from './lines.js'
import type { MessageChecks } from './message-checks.js'
import { MOST_WAITING, answerOf, shownMessages, type Queue } from './queue.js'
import type { RunMessage } from '../turn/run-entry.js'
import { limitsOfTurn, type ViewOf } from '../conversations/access-view.js'
import type { Transcripts } from '../conversations/transcripts.js'
import { usualBranch } from '../copies/branch-name.js'
import type { Turn } from '../turn/turn.js'
import { assertAccount } from '../turn/named-account.js'
import { differs, optionsOf } from '../turn/options.js'
import { chosenBy } from '../turn/tier/chosen.js'

/** The dependencies of message delivery. */
export interface DeliveryDeps {
  readonly engine: Engine
  readonly conversations: Conversations
  readonly queue: Queue
  readonly providers: Providers
  readonly decisions: KeyedMutex
  readonly checks: MessageChecks
  readonly forks: Forks
  readonly transcripts: Pick<Transcripts, 'lands'>
  readonly look: ViewOf
  /** Replaces stored values in messages. */
  readonly mask?: (input: TurnInput) => TurnInput
  /** Fills in the open options of a message from the card of its persona. */
  readonly wear?: WearCard
  /** Refuses a turn that exceeds a budget. */
  readonly affordable?: (asked: {
    readonly provider: string
    readonly model: string
    readonly conversationId: string
    readonly persona?: string
    readonly unattended: boolean
    /** A budget that asks a person first refuses, because nobody can answer. */
    readonly asks: boolean
  }) => Promise<void>
}

const NOTHING: Beginning = { starts: [], lands: true }
const RESERVED = new Set(['archived', 'search', 'designs'])
const SAID_BYTES = 128 * 1024
const TITLE_FROM_PROMPT = 60

/** Delivers a message: starts a turn, sends it into the running one, or queues it. */
export class MessageDelivery {
  readonly #deps: DeliveryDeps
  /** Messages being decided, by the id their sender gave them. */
  readonly #deciding = new Map<string, Promise<Started>>()

  constructor(deps: DeliveryDeps) {
    this.#deps = deps
  }

  async deliver(given: TurnInput, sender: Sender): Promise<Started> {
    const input = this.#deps.mask?.(given) ?? given
    wellFormed(input, sender)
    const { messageId } = input
    if (messageId === undefined) return this.#decide(input, minted('m'), sender)
    for (;;) {
      const known = this.#deps.queue.known(messageId)
      if (known) return this.#again(known, input, sender.caller)
      const deciding = this.#deciding.get(messageId)
      if (!deciding) break
      await deciding.catch(ignored('a message that was refused leaves no trace: then this one is the first'))
    }
    const decided = this.#decide(input, messageId, sender)
    this.#deciding.set(messageId, decided)
    try {
      return await decided
    } finally {
      this.#deciding.delete(messageId)
    }
  }

  async #again(known: LedgerRow, { conversationId }: TurnInput, caller: Caller): Promise<Started> {
    if (conversationId !== undefined && conversationId !== known.conversationId)
      refuse('conflict', 'this messageId was used in another conversation; expected a new one')
    const conversation =
      this.#deps.conversations.find(known.conversationId) ?? this.#deps.conversations.gone(known.conversationId)
    if (conversation) assertReaches(caller, conversation)
    const seen = await this.#deps.look(caller)
    const live = this.#deps.conversations.find(known.conversationId)
    if (seen.reach && !(live && (await accessToConversation(seen, live))))
      refuse('conflict', 'this messageId was used in another conversation; expected a new one')
    return answerOf(known)
  }

  async #decide(asked: TurnInput, messageId: string, { caller, held, own }: Sender): Promise<Started> {
    const { conversations, providers, checks, decisions, engine, look } = this.#deps
    const conversationId = asked.conversationId ?? minted('c')
    const seen = await look(caller)
    await this.#see(conversationId, caller, seen)
    possible(asked)
    const worn = (await this.#deps.wear?.(asked, conversations.find(conversationId))) ?? asked
    const input: TurnInput = seen.reach ? { ...worn, isolated: true } : worn
    if (input.autoLand) await checks.landing()
    if (input.autoLand && held !== undefined) refuse('forbidden', `autoLand: ${held}`)
    if (seen.reach) await this.#bounded(input, conversationId, seen)
    await checks.attachments(input.attachments ?? [], seen.within(conversations.find(conversationId)?.folders))
    return decisions.with(conversationId, async () => {
      if (engine.closing) refuse('unavailable', 'the sandbox is shutting down; send the message again when it is back')
      await this.#see(conversationId, caller, seen)
      const conversation = conversations.find(conversationId)
      await this.#session(input, conversation, caller, seen)
      await providers.refresh(input.agent ?? conversation?.provider)
      const { adapter, harness, model, actsAs } = optionsOf(input, conversation, providers)
      await assertAccount(adapter, input.account)
      await adapter.preflight?.(harness)
      const unattended = !canAnswerCards(caller) || input.unattended === true
      // A queued message is checked again when its turn begins.
      if (!engine.live(conversationId)) {
        const asks = unattended && own?.approved !== true
        const wearing = actsAs !== undefined && { persona: actsAs }
        await this.#deps.affordable?.({ provider: adapter.id, model, conversationId, ...wearing, unattended, asks })
      }
      const begins = conversation ? NOTHING : await this.#first(input, conversationId, caller, seen)
      const at = Date.now()
      const limits = limitsOfTurn(caller)
      const message: RunMessage = {
        ...(held === undefined && { lands: true }),
        from: caller.kind,
        ...(limits && { limits }),
        run: own?.run ?? minted('r'),
        ...(own?.approved && { approved: true }),
        ...(own?.fresh && { fresh: true }),
        ...(own?.document !== undefined && { document: own.document }),
        conversationId,
        messageId,
        input,
        by: caller.actor,
        attended: !unattended,
        at,
      }
      const of = conversation ?? this.#opened(message, caller, begins, seen)
      return this.#accept(message, of, { isNew: !conversation, apart: own !== undefined }, seen)
    })
  }

  /** Refuses a caller who may not see the conversation, or a deleted one with this id. */
  async #see(conversationId: string, caller: Caller, seen: AccessView): Promise<void> {
    const { conversations } = this.#deps
    const conversation = conversations.find(conversationId)
    const known = conversation ?? conversations.gone(conversationId)
    if (known) assertReaches(caller, known)
    if (conversation) await assertVisible(seen, conversation, true)
    // Reusing the id of a deleted conversation restores its messages.
    else if (known && !reachesAll(seen, known.folders)) refuseUnknown(conversationId)
  }

  /** Refuses a turn of a person limited to areas if it would start outside of them, or cannot be limited to them. */
  async #bounded({ startIn }: TurnInput, conversationId: string, seen: AccessView): Promise<void> {
    const { conversations, checks } = this.#deps
    const conversation = conversations.find(conversationId)
    await checks.masking()
    if (conversation?.branch) return
    if (conversation)
      refuse(
        'conflict',
        `${conversationId} works in the shared tree, where no turn can be limited to your areas: start a `
          + 'conversation of your own',
      )
    const access = await seen.access(startIn)
    if (access === undefined) {
      const work = seen.reach!.filter(folder => folder.access === 'work').map(({ path }) => path)
      refuse(
        'not-found',
        `startIn: expected a folder inside your areas (${work.join(', ') || 'none is there for work'}), `
          + `found ${startIn ?? 'none'}`,
      )
    }
    if (access === 'read') refuseReading(`startIn: ${startIn}`)
  }

  async #session(
    { sessionId, forkOf }: TurnInput,
    conversation: Conversation | undefined,
    caller: Caller,
    seen: AccessView,
  ): Promise<void> {
    const { conversations } = this.#deps
    if (forkOf && conversation)
      refuse('conflict', 'forkOf: this conversation has messages already; expected a new conversationId')
    if (sessionId === undefined || conversation?.session?.id === sessionId) return
    const owner = conversations.all.find(({ session }) => session?.id === sessionId)
    if (!owner || !mayReach(caller, owner) || !(await accessToConversation(seen, owner)))
      refuse('not-found', `sessionId: there is no session ${JSON.stringify(sessionId.slice(0, 120))}`)
    refuse(
      'unprocessable',
      'sessionId: this provider continues a session only in its conversation; send the message there',
    )
  }

  async #first(input: TurnInput, conversationId: string, caller: Caller, seen: AccessView): Promise<Beginning> {
    const { conversations, forks, checks, transcripts } = this.#deps
    const forked = input.forkOf ? await forks.check(input.forkOf, conversationId, caller, seen) : NOTHING
    const earlier = conversations.gone(conversationId) !== undefined
    const lands = forked.lands && (!earlier || (await transcripts.lands(conversationId)))
    const from = { lands, heardOthers: earlier || forked.heardOthers === true }
    if (input.startIn) await checks.startIn(input.startIn)
    const copied = forked.starts.length > 0 && input.isolated !== false
    if (!isolates(input) && !copied) return { starts: [], ...from }
    const pinned = await checks.isolation(input, seen)
    return {
      starts: [...pinned, ...forked.starts.filter(({ repo }) => !pinned.some(pin => pin.repo === repo))],
      ...from,
    }
  }

  #opened(message: RunMessage, caller: Caller, begins: Beginning, { reach: folders }: AccessView): Conversation {
    const { conversationId, input, by, at, lands } = message
    const { adapter, harness } = optionsOf(input, undefined, this.#deps.providers)
    const { forkOf } = input
    const source = forkOf && this.#deps.conversations.find(forkOf.conversationId)
    const title = input.title?.trim() || firstLineOf(input.prompt, TITLE_FROM_PROMPT)
    return {
      id: conversationId,
      ...(title && { title }),
      titleBy: input.title?.trim() ? 'person' : 'prompt',
      createdAt: at,
      updatedAt: at,
      openedBy: by,
      lastBy: by,
      ...(caller.kind === 'token' && caller.tokenId && { openedByToken: caller.tokenId }),
      provider: adapter.id,
      harness,
      ...(input.startIn && { startIn: input.startIn }),
      ...(input.origin && { origin: { ...input.origin } }),
      ...(forkOf && { forkedFrom: { conversationId: forkOf.conversationId, index: forkOf.keep, files: forkOf.files } }),
      // The usual name: its first turn gives it another where this one is taken.
      ...((isolates(input) || begins.starts.length > 0) && { branch: usualBranch(conversationId) }),
      repos: [],
      ...(folders && { folders: folders.map(folder => ({ ...folder })) }),
      ...(lands && begins.lands && { landsAlone: true }),
      ...(begins.heardOthers && { heardOthers: true }),
      ...(source && (source.heardTokens || source.openedByToken !== undefined) && { heardTokens: true }),
      ...(begins.starts.length > 0 && { starts: begins.starts }),
      totals: { turns: 0, toolUses: 0, helpers: 0, costUsd: 0, inputTokens: 0, outputTokens: 0 },
    }
  }

  /** `apart`: the message gets a run of its own. */
  async #accept(
    message: RunMessage,
    conversation: Conversation,
    { isNew, apart }: { readonly isNew: boolean; readonly apart: boolean },
    seen: AccessView,
  ): Promise<Started> {
    const { engine, queue, conversations, checks, forks } = this.#deps
    const { run, messageId, conversationId, at, by, input } = message
    const row = (delivery: LedgerRow['delivery'], of = run): LedgerRow => ({
      run: of,
      conversationId,
      messageId,
      delivery,
      at,
    })
    const turn = engine.live(conversationId)
    if (!turn) {
      const started = row('started')
      const fork = isNew ? input.forkOf : undefined
      if (fork) await durably(forks.prepare(fork, conversationId))
      await durably(queue.accept({ row: started, message, ...(isNew && { opened: conversation }) }))
      if (isNew) conversations.open(conversation)
      if (fork) await forks.begin(conversationId)
      engine.start(message)
      return answerOf(started)
    }
    // The running turn may write where the caller may only read; queue the message for a turn of the caller.
    const joins = !apart && worksEverywhere(seen, conversation.folders)
    const why = joins ? this.#why(turn, message) : 'other-options'
    if (why) {
      const waiting = queue.waiting(conversationId)
      if (waiting.length >= MOST_WAITING)
        refuse(
          'too-many',
          `${MOST_WAITING} messages wait in this conversation already; wait until some of them have had their turn`,
        )
      const queued = row('queued')
      await durably(queue.accept({ row: queued, message: { ...message, why } }))
      turn.log.push({
        kind: 'queue',
        messages: shownMessages(queue.waiting(conversationId)),
        paused: queue.paused(conversationId),
      })
      return answerOf(queued)
    }
    const said = row('said', turn.run)
    const { attachments = [], editorContext } = input
    const mentions = await checks.mentions(input.mentions ?? [], seen.within(conversation.folders))
    const note = preambleOf(notesOf({ mentions, attachments: [], ...(editorContext && { editorContext }) }))
    const sender = { ...(message.lands && { lands: true }), ...(message.from === 'token' && { byToken: true }) }
    const words = { messageId, text: input.prompt, attachments, by, at, ...(note && { note }), ...sender }
    await durably(queue.accept({ row: said, said: { ...words, run: turn.run } }))
    await turn.say(words)
    void conversations
      .update(conversationId, { lastBy: by, updatedAt: at })
      .catch(ignored('the message itself is stored'))
    return answerOf(said)
  }

  /** Why a message must wait for the running turn; undefined if it can be sent into it. */
  #why(turn: Turn, { conversationId, input, lands }: RunMessage): QueuedWhy | undefined {
    const { queue, providers, conversations } = this.#deps
    if (turn.stopping) return 'stopping'
    if (turn.state === 'parked') return 'parked'
    if (input.errand) return 'errand'
    const { permissionMode } = turn.entry.fields
    const { provider, harness, model, effort, thinking, fast } = chosenBy(turn.entry.fields)
    const adapter = providers.get(provider)
    if (
      turn.checking
      || turn.refuses(lands) !== undefined
      || !adapter.abilities(harness).words
      || Buffer.byteLength(input.prompt) > SAID_BYTES
    )
      return 'no-mid-turn-words'
    const { actsAs, autoLand = false } = conversations.get(conversationId)
    const running = {
      adapter,
      harness,
      model,
      permissionMode,
      ...(effort !== undefined && { effort }),
      ...(thinking !== undefined && { thinking }),
      ...(fast !== undefined && { fast }),
      ...(actsAs !== undefined && { actsAs }),
    }
    if (differs(input, { autoLand, ...turn.message.input }, running)) return 'other-options'
    return queue.waiting(conversationId).length ? 'behind-others' : undefined
  }
}

const isolates = ({ isolated, worktreeBase, forkOf }: TurnInput): boolean =>
  isolated === true || worktreeBase !== undefined || forkOf?.files === 'then'

/** Checks that need nothing but the message. */
const wellFormed = (
  { prompt, attachments, isolated, conversationId, origin }: TurnInput,
  { own }: Pick<Sender, 'own'>,
): void => {
  const invalid = (path: string, expected: string, found: string) =>
    refuse('invalid', `${path}: expected ${expected}, found ${found}`, { errors: [{ path, expected }] })
  if (!prompt && !attachments?.length) invalid('prompt', 'words, or at least one attachment', 'neither')
  if (origin !== undefined && !own) invalid('origin', 'nothing, since the sandbox sets it', 'an object')
  if (isolated && conversationId === undefined)
    invalid('conversationId', 'the id of the conversation that is to be isolated', 'none')
}

/** Refuses options that this sandbox does not support, instead of ignoring them. */
const possible = ({ conversationId, placement }: TurnInput): void => {
  if (conversationId !== undefined && RESERVED.has(conversationId))
    refuse('unprocessable', `conversationId: ${conversationId} is reserved by other routes; use another id`)
  if (placement?.kind === 'runner')
    refuse('unprocessable', `placement: there is no runner ${JSON.stringify(placement.id.slice(0, 120))}`)
}

/** Stores a message; reports a full disk to the caller. */
const durably = async (step: Promise<void>): Promise<void> => {
  try {
    await step
  } catch (error) {
    if (!isFull(error)) throw error
    refuse(
      'too-large',
      'the disk of the sandbox is full: nothing was accepted; free some space and send the message again',
      {
        cause: error,
      },
    )
  }
}
