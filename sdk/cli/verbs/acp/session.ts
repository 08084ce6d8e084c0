import { randomBytes } from 'node:crypto'
import type { AgentContext, ContentBlock, PromptResponse } from '@agentclientprotocol/sdk'
import type { AttachData, Frame } from '../../../../plugins/agent/contract.js'
import type { AgentCard } from '../../../../plugins/agents/contract.js'
import type { Client } from '../../../client.js'
import { ignored } from '../../../ignored.js'
import { Refusal } from '../../../refusal.js'
import { isAnswerable } from '../../follow/cards.js'
import { startTurn } from '../../follow/turn.js'
import { confirmedIn, replyInWords } from './ask-editor.js'
import { chooseMode, chosenFor, effortNamed, menusOf, modelNamed, placeNamed, type SessionMenus } from './choices.js'
import { commandsChange, runSessionCommand, type SeenWork } from './commands.js'
import type { ServedFolder } from './daemons.js'
import { changesOfRow, lastTodos, personSaid, recordRows } from './history.js'
import { EditorCards, type EditorAbilities } from './open-cards.js'
import { ConversationFiles } from './pictures.js'
import { type EditorMessage, editorMessage } from './prompt-message.js'
import { promptAnswer, runOutcomeOf, type RunOutcome } from './run-end.js'
import { noticeUpdates, RunUpdates, type SessionChange, todoPlanOf } from './updates.js'

/** What a session reads of a conversation that there is; an editor's token reads less than the whole card. */
export type OpenedConversation = Pick<AgentCard, 'provider'>
  & Partial<Pick<AgentCard, 'model' | 'effort' | 'permissionMode' | 'title' | 'costUsd' | 'run' | 'startedAt'>>

/** What a session needs of its connection. */
export interface SessionDeps {
  readonly editor: AgentContext
  readonly abilities: EditorAbilities
  /** Aborted when the editor has gone. */
  readonly signal: AbortSignal
  /** The daemon of the session's folder, connected anew after it was away. */
  served(): Promise<ServedFolder>
}

/** The conversation whose messages a new one begins with. */
export interface ForkedFrom {
  readonly conversationId: string
  readonly keep: number
  readonly files: 'now'
}

interface FollowedRun {
  /** Settles when everything that had happened before is shown. */
  readonly caughtUp: Promise<void>
  readonly ended: Promise<RunOutcome>
  /** Aborted when it is not waited for any more. */
  readonly left?: AbortController
}

/** How much of a run is shown. */
interface Follow {
  /** Show the message that began it. */
  readonly echo: boolean
  /** Show only what happens from now on. */
  readonly onlyNew?: boolean
}

interface OpenPrompt {
  cancelled: boolean
  readonly messageId: string
  /** Resolves when a card waits that the editor cannot show: the next message answers it. */
  readonly left: PromiseWithResolvers<'left'>
  /** The run of a message that was queued. */
  queued?: string
}

/** One conversation in an editor. */
export class EditorSession {
  readonly id: string
  readonly #deps: SessionDeps
  readonly #menus: SessionMenus
  readonly #runs = new Map<string, FollowedRun>()
  readonly #prompts = new Set<OpenPrompt>()
  readonly #own = { messages: new Set<string>(), runs: new Set<string>() }
  readonly #cards: EditorCards
  /** Runs are shown one after the other. */
  #tail: Promise<unknown> = Promise.resolve()
  #shown: Promise<unknown> = Promise.resolve()
  #began: boolean
  #fork: ForkedFrom | undefined
  #title: string | undefined
  #costUsd: number
  /** Aborted when the editor does not show it any more. */
  readonly #over = new AbortController()
  /** The newest run when the conversation was opened. */
  readonly #before: string | undefined
  /** What was heard of the conversation while a message was sent. */
  #later: AgentCard | undefined
  /** The run that is being shown. */
  #now: string | undefined
  readonly #seenWork: SeenWork = {}

  constructor(
    id: string,
    menus: SessionMenus,
    deps: SessionDeps,
    from: { card?: OpenedConversation; fork?: ForkedFrom } = {},
  ) {
    this.id = id
    this.#menus = menus
    this.#deps = deps
    this.#began = from.card !== undefined
    this.#fork = from.fork
    this.#before = from.card?.run
    const { editor, abilities, signal } = deps
    this.#cards = new EditorCards({
      ...{ sessionId: id, editor, abilities, signal },
      show: (...changes) => this.show(...changes),
      cancelling: () => [...this.#prompts].some(({ cancelled }) => cancelled),
      onLeft: () => this.#leave(),
    })
    this.#title = from.card?.title
    this.#costUsd = from.card?.costUsd ?? 0
  }

  /** The menus of the session, in every form that editors read. */
  get menus(): ReturnType<typeof menusOf> {
    return menusOf(this.#menus)
  }

  /** Tells the editor the commands of the session. */
  async announce(): Promise<void> {
    const { client } = await this.#deps.served()
    const agent = this.#menus.chosen.agent
    const { commands } = await client
      .call('GET /agent/commands', agent === undefined ? {} : { agent })
      .catch(() => ({ commands: [] }))
    await this.show(commandsChange(commands))
  }

  /** Shows the whole conversation, and what runs in it. */
  async replay(card: OpenedConversation): Promise<void> {
    const { client, root } = await this.#deps.served()
    const files = this.#files(client, root)
    let shownRun = false
    for await (const row of recordRows(client, this.id)) {
      shownRun ||= row.run !== undefined && row.run === card.run
      await this.show(...(await changesOfRow(row, { root, files })))
    }
    const { run } = card
    if (run === undefined) return
    if (card.startedAt !== undefined && !shownRun) return this.#follow(run, { echo: true }).caughtUp
    const todos = await lastTodos(client, this.id, run)
    if (todos) await this.show(todoPlanOf(todos.items))
  }

  /** Shows what runs in the conversation from now on. */
  async resume(card: OpenedConversation): Promise<void> {
    if (card.run !== undefined && card.startedAt !== undefined)
      await this.#follow(card.run, { echo: true, onlyNew: true }).caughtUp
  }

  /** The conversation changed: a turn that somebody else began is shown, and so is a new title. */
  changed(card: AgentCard): void {
    if (!this.#began || this.#over.signal.aborted) return
    this.#learn(card).catch(ignored('the editor has gone'))
    const { run } = card
    if (run === undefined || run === this.#before || this.#own.runs.has(run) || this.#runs.has(run)) return
    // The turn may be that of the message which is being sent.
    if (this.#prompts.size > 0) this.#later = card
    else this.#follow(run, { echo: true }).ended.catch(ignored('the next message says why'))
  }

  /** Sends a message, and answers when its turn has ended. */
  async prompt(blocks: readonly ContentBlock[], signal: AbortSignal): Promise<PromptResponse> {
    const { client, root } = await this.#deps.served()
    const message = await editorMessage(blocks, root, this.#files(client, root))
    const command = this.#command(client, root, message.prompt, signal)
    if (command) {
      await command
      return { stopReason: 'end_turn' }
    }
    const open: OpenPrompt = {
      cancelled: false,
      messageId: `m-${randomBytes(8).toString('hex')}`,
      left: Promise.withResolvers(),
    }
    const withdrawn = () => void this.cancel().catch(ignored('the turn has ended meanwhile'))
    signal.addEventListener('abort', withdrawn, { once: true })
    this.#prompts.add(open)
    try {
      const followed = this.#cards.unanswered
        ? await this.#answer(client, message)
        : await this.#send(client, message, open)
      // It was cancelled while it was being sent.
      if (open.cancelled) await this.cancel()
      const outcome = await Promise.race([followed.ended, open.left.promise])
      if (outcome === 'left') return { stopReason: open.cancelled ? 'cancelled' : 'end_turn' }
      return promptAnswer(outcome, open.cancelled)
    } finally {
      this.#prompts.delete(open)
      if (this.#later) this.changed(this.#later)
      this.#later = undefined
      signal.removeEventListener('abort', withdrawn)
      await this.#shown
    }
  }

  /** Stops the turn, and takes back messages that wait. */
  async cancel(): Promise<void> {
    const { client } = await this.#deps.served()
    const open = [...this.#prompts]
    for (const prompt of open) prompt.cancelled = true
    if (!this.#began) return
    for (const prompt of open) await this.#takeBack(client, prompt)
    await client.call('POST /agent/stop', { conversationId: this.id })
  }

  async setMode(id: unknown): Promise<void> {
    chooseMode(this.#menus, id)
    await this.#menusChanged()
  }

  async setModel(id: unknown): Promise<void> {
    const chosen = modelNamed(this.#menus, id)
    if (this.#began && chosen.agent !== undefined) {
      const { client } = await this.#deps.served()
      await client.call('POST /agent/switch-account', { conversationId: this.id, ...chosen })
    }
    this.#menus.chosen = chosen
    await this.#menusChanged()
    await this.announce()
  }

  async setOption(id: string, value: unknown): Promise<void> {
    if (id === 'mode') return this.setMode(value)
    if (id === 'model') return this.setModel(value)
    if (id === 'effort') {
      const effort = effortNamed(this.#menus, value)
      if (this.#began && effort !== undefined) {
        const { client } = await this.#deps.served()
        await client.call('POST /agent/switch-account', { conversationId: this.id, effort })
      }
      this.#menus.effort = effort
    } else if (id === 'place') this.#menus.isolated = placeNamed(this.#menus, value)
    else throw new Refusal('invalid', `configId: expected mode, model, effort or place, found ${id.slice(0, 80)}`)
    await this.#menusChanged()
  }

  /** The daemon of the session's folder. */
  served(): Promise<ServedFolder> {
    return this.#deps.served()
  }

  /** Tells the editor the title of the conversation. */
  async renamed(title: string): Promise<void> {
    this.#title = title
    await this.show({ sessionUpdate: 'session_info_update', title, updatedAt: new Date().toISOString() })
  }

  /** The editor does not show it any more; what runs goes on, and questions stay open. */
  close(): void {
    this.#leave()
    this.#cards.drop()
    this.#over.abort()
  }

  /** Tells the editor changes, in order. */
  show(...changes: readonly SessionChange[]): Promise<void> {
    const told = this.#shown.then(async () => {
      for (const update of changes)
        if (!this.#over.signal.aborted) await this.#deps.editor.notify('session/update', { sessionId: this.id, update })
    })
    this.#shown = told.catch(ignored('the editor has gone'))
    return told
  }

  /** Prompts end while their turn waits for an answer. */
  #leave(): void {
    for (const { left } of this.#prompts) left.resolve('left')
  }

  #files(client: Client, root: string): ConversationFiles {
    return new ConversationFiles(client, root, this.id)
  }

  async #menusChanged(): Promise<void> {
    const { modes, configOptions } = this.menus
    await this.show(
      { sessionUpdate: 'current_mode_update', currentModeId: modes.currentModeId },
      { sessionUpdate: 'config_option_update', configOptions },
    )
  }

  #command(client: Client, root: string, prompt: string, signal: AbortSignal): Promise<void> | undefined {
    const found = runSessionCommand(prompt, {
      client,
      root,
      id: this.id,
      signal: AbortSignal.any([signal, this.#deps.signal]),
      seen: this.#seenWork,
      show: (...changes) => this.show(...changes),
      renamed: title => this.renamed(title),
      confirmed: (title, text) => confirmedIn(this.#deps.editor, this.id, title, text),
    })
    return found?.then(() => {
      if (/^\/discard\b/.test(prompt.trim())) this.#reopen().catch(ignored('its conversation is still there'))
    })
  }

  /** After a discard a message opens the conversation anew. */
  async #reopen(): Promise<void> {
    const { client, copies } = await this.#deps.served()
    const there = await client.call('GET /agents/{id}', { id: this.id }).then(
      () => true,
      (error: unknown) => !(error instanceof Refusal && error.reason === 'not-found'),
    )
    if (there) return
    this.#began = false
    this.#menus.isolated = copies
    await this.#menusChanged()
  }

  async #send(client: Client, message: EditorMessage, open: OpenPrompt): Promise<FollowedRun> {
    const { mode, isolated } = this.#menus
    const { startIn } = await this.#deps.served()
    const first = !this.#began
    this.#own.messages.add(open.messageId)
    delete this.#seenWork.tips
    const started = await startTurn(
      { client, url: '' },
      {
        conversationId: this.id,
        messageId: open.messageId,
        prompt: message.prompt,
        ...chosenFor(this.#menus),
        ...(message.attachments.length > 0 && { attachments: message.attachments }),
        ...(message.mentions.length > 0 && { mentions: message.mentions }),
        ...(first && isolated && { isolated }),
        ...(first && startIn && { startIn }),
        ...(first && this.#fork && { forkOf: this.#fork }),
      },
    )
    this.#began = true
    this.#fork = undefined
    if (this.#menus.mode === mode) this.#menus.modeChosen = false
    if (started.delivery === 'queued') open.queued = started.run
    if (this.#menus.isolated !== undefined) {
      this.#menus.isolated = undefined
      await this.#menusChanged()
    }
    if (started.delivery !== 'said') this.#own.runs.add(started.run)
    return this.#follow(started.run, { echo: started.delivery === 'said' })
  }

  async #answer(client: Client, message: EditorMessage): Promise<FollowedRun> {
    if (message.attachments.length > 0)
      throw new Refusal('invalid', 'prompt: expected words that answer the question, found pictures or files')
    const reply = replyInWords(this.#cards.unanswered!, message.prompt)
    await client.call('POST /agent/reply', reply)
    const newest = [...this.#runs.values()].at(-1)
    return newest ?? { caughtUp: Promise.resolve(), ended: Promise.resolve({}) }
  }

  async #takeBack(client: Client, prompt: OpenPrompt): Promise<void> {
    const { messageId, queued } = prompt
    try {
      await client.call('DELETE /agents/{id}/queue/{messageId}', { id: this.id, messageId })
    } catch (error) {
      // Else it does not wait.
      if (!(error instanceof Refusal && error.reason === 'forbidden') || !queued || queued === this.#now) return
      delete prompt.queued
      this.#runs.get(queued)?.left?.abort()
      this.#runs.delete(queued)
      prompt.left.resolve('left')
      const text = 'A message still waits, which this token may not take back: it runs after your next one.'
      await this.show(...noticeUpdates(this.#deps.abilities.shows, 'warning', text))
    }
  }

  #follow(run: string, how: Follow): FollowedRun {
    const known = this.#runs.get(run)
    if (known) return known
    const caughtUp = Promise.withResolvers<void>()
    const left = new AbortController()
    const ended = this.#tail.then(() => this.#watch(run, how, left.signal, caughtUp.resolve)).finally(caughtUp.resolve)
    this.#tail = ended.catch(ignored('the prompt that waits for it fails'))
    const followed = { caughtUp: caughtUp.promise, ended, left }
    this.#runs.set(run, followed)
    return followed
  }

  /** Shows a run to its end. */
  async #watch(
    run: string,
    { echo, onlyNew = false }: Follow,
    left: AbortSignal,
    caughtUp: () => void,
  ): Promise<RunOutcome> {
    const { client, root } = await this.#deps.served()
    const files = this.#files(client, root)
    const view = { run, root, shows: this.#deps.abilities.shows, picture: files.picture }
    const updates = new RunUpdates(view, this.#costUsd)
    let outcome: RunOutcome = {}
    let next: string | undefined
    let known = 0
    const signal = AbortSignal.any([this.#deps.signal, this.#over.signal, left])
    for await (const event of await client.call('POST /agent/attach', { conversationId: this.id, run }, { signal })) {
      if (event.kind === 'attached') {
        // The frames of this run are gone: a later one is the newest.
        if (event.run !== run) break
        this.#now = run
        known = event.seq
        if (echo && !onlyNew) await this.show(...(await personSaid(event.prompt, event.attachments ?? [], files)))
        if (known === 0) caughtUp()
      } else if (event.kind === 'end') next = event.next
      else {
        const past = event.seq <= known
        outcome = { ...outcome, ...(await this.#seen(event, updates, files, onlyNew && past)) }
        if (event.seq >= known) {
          caughtUp()
          if (!this.#over.signal.aborted) this.#cards.raise(client)
        }
      }
    }
    this.#cards.drop()
    if (next !== undefined) this.#follow(next, { echo: !this.#own.runs.has(next) })
    else for (const prompt of this.#prompts) if (outcome.end !== 'completed') await this.#takeBack(client, prompt)
    await this.#settled(client)
    return outcome
  }

  /** Shows one frame; returns what it tells about the end. */
  async #seen(
    { event }: AttachData & { kind: 'frame' },
    updates: RunUpdates,
    files: ConversationFiles,
    silent: boolean,
  ): Promise<RunOutcome> {
    const changes = await updates.of(event)
    if (isAnswerable(event)) changes.push(...this.#cards.opened(event, updates))
    if (event.kind === 'resolved') changes.push(...this.#cards.resolved(event, updates))
    if (event.kind === 'steer' && !(event.messageId !== undefined && this.#own.messages.has(event.messageId)))
      changes.push(...(await personSaid(event.text, event.attachments ?? [], files)))
    if (!silent) await this.show(...changes)
    await this.#noted(event)
    return runOutcomeOf(event)
  }

  /** Keeps the menus what the run says they are. */
  async #noted(frame: Frame): Promise<void> {
    if (frame.kind === 'commands') return this.show(commandsChange(frame.items))
    const { chosen, mode } = this.#menus
    if (frame.kind === 'mode' && frame.mode !== mode) {
      this.#menus.mode = frame.mode
      return this.#menusChanged()
    }
    if (frame.kind !== 'init' && frame.kind !== 'switched') return
    const { provider: agent, model } = frame
    if (agent === undefined || (agent === chosen.agent && model === chosen.model)) return
    this.#menus.chosen = { agent, ...(model !== undefined && { model }) }
    await this.#menusChanged()
  }

  /** After a run: its title and cost. */
  async #settled(client: Client): Promise<void> {
    const card = await client
      .call('GET /agents/{id}', { id: this.id }, { signal: AbortSignal.timeout(5000) })
      .catch(() => undefined)
    if (card?.costUsd !== undefined) this.#costUsd = card.costUsd
    if (card) await this.#learn(card)
  }

  /** Shows the title and the mode that others gave the conversation; a mode that was chosen here stays. */
  async #learn({ title, permissionMode, startedAt }: AgentCard): Promise<void> {
    if (title !== undefined && title !== this.#title) await this.renamed(title)
    const { mode, modeChosen } = this.#menus
    // A turn may have left plan mode for itself, and a message that waits may have another mode.
    const settled =
      startedAt === undefined && [...this.#prompts].every(({ queued = this.#now }) => queued === this.#now)
    if (modeChosen || !settled || permissionMode === undefined || permissionMode === mode) return
    this.#menus.mode = permissionMode
    await this.#menusChanged()
  }
}
