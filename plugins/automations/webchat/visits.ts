import { hash } from 'node:crypto'
import { refuse, type Context, type Host, type Input } from '../../../sdk/index.js'
import { digest } from '../../../sdk/node/access/first-answers.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { record } from '../../../sdk/node/record/record.js'
import type { Automation, AutomationsCalls } from '../contract.js'
import type { Definition } from '../definitions/definitions.js'
import { MOST_QUEUED, type Fires } from '../fires/fires.js'
import type { FireClock } from '../schedule/clock.js'
import type { VisitAnswers } from './answers.js'
import type { VisitorBudgets } from './budgets.js'
import type { Challenges } from './challenges.js'
import type { Challenge, VisitorEnd, VisitorFrame, WebchatConfig, WidgetConfig } from './contract.js'
import { admitsOrigin } from './origins.js'
import { visitorName } from './visitor-name.js'
import type { ChatSites } from './sites.js'
import { isWebchat } from './strangers.js'
import { isAnswered, type ThreadLine, type VisitorThread, type VisitorThreads } from './threads.js'
import { visitorPayload, type VerifiedVisitor } from './visitor-words.js'

/** The dependencies of visits. */
export interface VisitsDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'log'>
  readonly clock: FireClock
  readonly definition: (id: string) => Promise<Definition | undefined>
  readonly fires: Pick<Fires, 'queued'>
  readonly threads: VisitorThreads
  readonly answers: VisitAnswers
  readonly sites: ChatSites
  readonly budgets: VisitorBudgets
  readonly challenges: Challenges
}

type Message = Input<AutomationsCalls, 'POST /webchat/{id}/message'>
type Reading = Input<AutomationsCalls, 'GET /webchat/{id}/stream'>
type Request = Pick<Context, 'http' | 'signal'>

/** A message that is kept: where, and what its sender may read the thread with. */
interface Kept {
  readonly thread: VisitorThread
  readonly token: string
  readonly seq: number
}

const CONFIG_ROUTE = 'GET /webchat/{id}/config'
const MOST_CHARACTERS = 8000
const MOST_BYTES = 16 * 1024
const MOST_STREAMS = 3
const MINUTE = 60_000
const DEFAULT_TTL = 30 * 24 * 60
/** How often threads are closed that nobody asks for any more. */
const CLOSING_MS = 60 * MINUTE
const DEFAULT_ACCENT = '#2563eb'

/** The visits of web pages: each call with its checks in the order that the contract names. */
export class Visits {
  readonly #deps: VisitsDeps
  readonly #turns = new KeyedMutex()
  #cancel: (() => void) | undefined

  constructor(deps: VisitsDeps) {
    this.#deps = deps
  }

  /** Whether pages of an origin may use a chat. */
  async origin(id: string, origin: string, asked: string): Promise<'admitted' | 'refused' | 'unknown'> {
    const found = await this.#deps.definition(id)
    if (!found || !isWebchat(found.automation)) return 'unknown'
    if (admitsOrigin(originsOf(found.automation), origin)) return 'admitted'
    if (asked === CONFIG_ROUTE) await this.#deps.sites.count(id, origin, 'refused')
    return 'refused'
  }

  async config(id: string, { http }: Request): Promise<WidgetConfig> {
    const { budgets, sites } = this.#deps
    budgets.config.spend(addressOf(http))
    const { webchat = {} } = await this.#on(id)
    await sites.count(id, http?.pageOrigin ?? '', 'loads')
    const { title, greeting, accent, position, access, requireName, antiBot, signIn } = webchat
    return {
      automationId: id,
      title: title ?? 'Chat',
      greeting: greeting ?? '',
      accent: accent ?? DEFAULT_ACCENT,
      position: position ?? 'bottom-right',
      access: access ?? 'public',
      requireName: requireName ?? false,
      antiBot: antiBot ?? 'pow',
      ...(signIn && { signIn: { ...signIn } }),
      maxLength: MOST_CHARACTERS,
    }
  }

  async challenge(id: string, thread: string, { http }: Request): Promise<Challenge> {
    const { budgets, challenges } = this.#deps
    const address = addressOf(http)
    budgets.challenge.spend(address)
    const { webchat } = await this.#on(id)
    return challenges.make({ automationId: id, thread }, address, budgets.used(id, webchat?.dailyMessageMax))
  }

  /** Takes a message and follows its answer. */
  async *message(message: Message, { http, signal }: Request): AsyncGenerator<VisitorFrame, VisitorEnd> {
    const { budgets, threads } = this.#deps
    const { id, conversationId, history } = message
    const automation = await this.#on(id)
    const bytes = Buffer.byteLength(JSON.stringify(message))
    if (!history && bytes > MOST_BYTES)
      refuse('too-large', `expected at most ${MOST_BYTES} bytes without history, found ${bytes}`)
    budgets.spendMinute(addressOf(http), `${id}/${conversationId}`)
    const verified = await this.#verified(automation, message)
    const page = http?.pageOrigin ?? ''
    const { thread, token, seq } = await this.#turns.with(`${id}/${conversationId}`, () =>
      this.#taken(automation, message, { page, ...(verified && { verified }) }),
    )
    yield { kind: 'accepted', visitor: token, seq }
    const ends = (line: ThreadLine) => line.from !== 'visitor' && line.answers === seq
    return yield* threads.follow(thread, seq - 1, { signal, ends })
  }

  /** Follows a thread. */
  async *stream(reading: Reading, { http, signal }: Request): AsyncGenerator<VisitorFrame, VisitorEnd> {
    const { budgets, threads } = this.#deps
    const { id, conversation, visitor, after = 0 } = reading
    budgets.stream.spend(addressOf(http))
    const found = await this.#deps.definition(id)
    if (!found || !isWebchat(found.automation)) return refuseUnknownChat()
    const thread = await this.#open(id, conversation, chatOf(found))
    if (!threads.holds(thread, visitor)) return refuseVisitor()
    if (threads.reading(thread) >= MOST_STREAMS)
      refuse('too-many', `expected at most ${MOST_STREAMS} streams of one thread: close one first`, { retryAfter: 5 })
    return yield* threads.follow(thread, after, { signal })
  }

  /** Closes old threads, now and every hour, and asks for what a kill left without an answer. */
  async start(): Promise<void> {
    const { threads, answers } = this.#deps
    await this.#closeOld()
    await this.#each('going on with a chat failed', async thread => {
      const lines = await threads.lines(thread)
      for (const [at, line] of lines.entries())
        if (line.from === 'visitor' && !isAnswered(lines, at + 1)) await answers.askAgain(thread, at + 1)
    })
  }

  end(): void {
    this.#cancel?.()
  }

  /** Closes the threads in which nothing was said for too long. */
  async #closeOld(): Promise<void> {
    const { clock, definition } = this.#deps
    this.#cancel = clock.at(clock.now() + CLOSING_MS, () => void this.#closeOld())
    const chats = new Map<string, WebchatConfig | undefined>()
    await this.#each('closing an old chat failed', async ({ automationId, id }) => {
      if (!chats.has(automationId)) chats.set(automationId, chatOf(await definition(automationId)))
      await this.#turns.with(`${automationId}/${id}`, () => this.#open(automationId, id, chats.get(automationId)))
    })
  }

  /** Works through all threads: one that cannot be read keeps nobody else waiting. */
  async #each(failed: string, work: (thread: VisitorThread) => Promise<void>): Promise<void> {
    const { threads, host } = this.#deps
    for (const thread of threads.all)
      await work(thread).catch(error => {
        host.log.warn(failed, { automation: thread.automationId, error: String(error) })
      })
  }

  /** The automation of a chat that is on. */
  async #on(id: string): Promise<Automation> {
    const found = await this.#deps.definition(id)
    if (!found || !isWebchat(found.automation)) return refuseUnknownChat()
    if (!found.accepted || !found.automation.enabled) return refuse('conflict', 'this chat is switched off')
    return found.automation
  }

  /** A thread, unless nothing was said in it for too long. */
  async #open(id: string, conversation: string, chat: WebchatConfig = {}): Promise<VisitorThread | undefined> {
    const { threads, clock } = this.#deps
    const thread = threads.get(id, conversation)
    const ttl = (chat.sessionTtlMinutes ?? DEFAULT_TTL) * MINUTE
    if (!thread || clock.now() - thread.lastAt < ttl) return thread
    await threads.close(thread)
    return undefined
  }

  /** Whom the site's sign-in names; refuses where the chat needs it. */
  async #verified({ webchat }: Automation, { idToken }: Message): Promise<VerifiedVisitor | undefined> {
    const { signIn, access } = webchat ?? {}
    if (idToken === undefined)
      return access === 'signed-in' ? refuse('unauthenticated', 'sign in to this site first: no idToken') : undefined
    if (!signIn) return refuse('invalid', 'idToken: this chat has no sign-in: leave it out')
    const { issuer, clientId } = signIn
    const { subject, email, name } = await this.#deps.host.call('identity.verify', { token: idToken, issuer, clientId })
    return { issuer, subject, ...(email !== undefined && { email }), ...(name !== undefined && { name }) }
  }

  /** Admits a message and keeps it, or finds it kept; asks for its answer. */
  async #taken(
    automation: Automation,
    message: Message,
    from: { readonly page: string; readonly verified?: VerifiedVisitor },
  ): Promise<Kept> {
    const { threads, budgets, fires, answers, clock } = this.#deps
    const { id, webchat = {} } = automation
    const { messageId, content } = message
    const admitted = await this.#admitted(automation, message, from.verified)
    const lines = admitted.thread ? await threads.lines(admitted.thread) : []
    const known = lines.findIndex(line => line.from === 'visitor' && line.messageId === messageId) + 1
    if (admitted.thread && known > 0) return { thread: admitted.thread, token: admitted.token, seq: known }
    const said = lines.filter(line => line.from === 'visitor').length
    if (admitted.thread && message.history)
      refuse('invalid', 'history: expected it with the first message of a thread alone')
    if (webchat.conversationMessageMax !== undefined && said >= webchat.conversationMessageMax)
      refuse('too-many', `expected at most ${webchat.conversationMessageMax} messages in one thread: begin another`)
    if (fires.queued(id) >= MOST_QUEUED)
      refuse('too-many', 'too many messages wait already: try again later', { retryAfter: 60 })
    await budgets.spendDay(id, webchat.dailyMessageMax)
    const opened = admitted.thread ? { thread: admitted.thread, token: admitted.token } : await admitted.open()
    const name = message.displayName ?? opened.thread.name
    const by = (name === undefined ? '' : visitorName(name)) || 'a visitor'
    const payload = visitorPayload({ ...message, ...(name !== undefined && { displayName: name }) }, from)
    const line = { from: 'visitor', text: content, at: clock.now(), messageId, payload, by, page: from.page } as const
    const seq = await threads.add(opened.thread, line)
    failpoint('automations.visit.kept')
    await this.#record(automation, by, from.page, content)
    await answers.ask(automation, opened.thread, seq, line)
    return { ...opened, seq }
  }

  /** Judges token or puzzle; a thread that is not open yet is opened later, when nothing refuses the message. */
  async #admitted(
    automation: Automation,
    message: Message,
    verified: VerifiedVisitor | undefined,
  ): Promise<
    | { readonly thread: VisitorThread; readonly token: string }
    | { readonly thread?: undefined; open(): Promise<{ thread: VisitorThread; token: string }> }
  > {
    const { threads, challenges } = this.#deps
    const { id, webchat = {} } = automation
    const { conversationId, messageId, visitor, powNonce, displayName } = message
    const subject = verified && digest(verified.issuer, verified.subject)
    const thread = await this.#open(id, conversationId, webchat)
    if (thread) {
      // The first answer was lost, and with it the token: the puzzle says that it is the same sender.
      if (thread.subject !== subject) return refuseVisitor()
      const again = visitor === undefined && powNonce !== undefined && thread.first === messageId
      if (again && thread.proof === hash('sha256', powNonce)) return threads.renew(thread)
      if (visitor === undefined || !threads.holds(thread, visitor)) return refuseVisitor()
      return { thread, token: visitor }
    }
    if (visitor !== undefined) return refuseVisitor()
    const name = displayName === undefined ? '' : visitorName(displayName)
    if (webchat.requireName && name === '')
      refuse('invalid', 'displayName: expected the name of the visitor, found none', {
        errors: [{ path: 'displayName', expected: 'a name' }],
      })
    const solves = (webchat.antiBot ?? 'pow') === 'pow'
    if (solves) challenges.assertSolved(powNonce, { automationId: id, thread: conversationId })
    return {
      open: () => {
        if (solves) challenges.use(powNonce!)
        return threads.open({
          ...{ automationId: id, id: conversationId, first: messageId },
          ...(solves && { proof: hash('sha256', powNonce!) }),
          ...(subject !== undefined && { subject }),
          ...(name && { name }),
        })
      },
    }
  }

  #record({ id }: Automation, author: string, page: string, content: string): Promise<void> {
    return record(this.#deps.host, {
      ...{ type: 'message.received', direction: 'in', audience: 'viewer', outcome: 'ok' },
      ...{ provider: 'webchat', author, content, source: page, automationIds: [id] },
    })
  }
}

const originsOf = ({ trigger }: Automation): readonly string[] | undefined =>
  trigger.kind === 'listener' ? trigger.allowedOrigins : undefined

/** What a maintainer saved of a chat: an edit of the file that nobody saved closes nothing. */
const chatOf = (found: Definition | undefined): WebchatConfig | undefined =>
  found?.accepted ? found.automation.webchat : undefined

const addressOf = (http: Context['http']): string => http?.address ?? ''

const refuseUnknownChat = (): never => refuse('not-found', 'there is no chat of this id')

const refuseVisitor = (): never =>
  refuse('unauthenticated', 'the token of this thread is missing or wrong, or the thread is closed: begin another')
