import { randomUUID } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { refuse } from '../../../sdk/index.js'
import type { Refusal } from '../../../sdk/index.js'
import { assertVisible, worksEverywhere } from '../../../sdk/node/access/conversation-reach.js'
import { inside } from '../../../sdk/node/files/paths.js'
import type { AccessView } from '../../../sdk/node/access/access-view.js'
import { assertReaches, type Sender } from '../conversations/access.js'
import type { EditorContext } from '../contract.js'
import type { Conversations } from '../conversations/conversations.js'
import type { Engine } from './engine.js'
import type { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { notesOf, preambleOf } from './preamble.js'
import type { ViewOf } from '../conversations/access-view.js'
import type { Providers } from '../providers/providers.js'

/** The dependencies of sending a message into a turn. */
export interface SteerDeps {
  readonly engine: Engine
  readonly conversations: Conversations
  readonly providers: Providers
  readonly decisions: KeyedMutex
  readonly workspace: string
  readonly look: ViewOf
}

/** A message for a running turn. */
export interface SteerInput {
  readonly conversationId: string
  readonly text: string
  readonly attachments?: string[]
  readonly editorContext?: EditorContext
}

/** Sends a message into the running turn; it is in the log when this returns. */
export const steer = async (deps: SteerDeps, input: SteerInput, { caller, held }: Sender): Promise<void> => {
  const { engine, conversations, providers, decisions, workspace, look } = deps
  const { conversationId, text, attachments = [], editorContext } = input
  if (!text && !attachments.length) refuse('invalid', 'text: expected words, or at least one attachment, found neither')
  const conversation = conversations.get(conversationId)
  const all = await look(caller)
  assertReaches(caller, conversation)
  await assertVisible(all, conversation, true)
  const seen = all.within(conversation.folders)
  for (const path of attachments) await within(workspace, path, seen)
  const note = editorContext ? preambleOf(notesOf({ mentions: [], attachments: [], editorContext })) : ''
  await decisions.with(conversationId, async () => {
    const turn = engine.live(conversationId)
    if (!turn) return refuse('conflict', 'no turn is running: start one with POST /agent')
    if (turn.stopping) refuse('conflict', 'the turn is stopping: use POST /agent')
    if (!worksEverywhere(all, conversation.folders))
      refuse('conflict', 'this turn may write in folders you may only read: use POST /agent')
    if (turn.checking) refuse('conflict', 'the agent has finished and rules are being checked: use POST /agent')
    const { provider, harness } = turn.entry.fields
    if (!providers.get(provider).abilities(harness).words)
      refuse('conflict', `provider ${provider} takes no message during a turn: use POST /agent`)
    const sender = { ...(held === undefined && { lands: true }), ...(caller.kind === 'token' && { byToken: true }) }
    await turn.say({
      messageId: `m-${randomUUID()}`,
      text,
      note,
      attachments,
      by: caller.actor,
      at: Date.now(),
      ...sender,
    })
  })
}

const within = async (workspace: string, path: string, seen: AccessView): Promise<void> => {
  if (seen.reach && !(await seen.sees(path))) {
    const errors = [{ path: 'attachments', expected: 'a path inside the workspace' }]
    refuse('invalid', `attachments: nothing that the turn reaches is named ${path}`, { errors })
  }
  const file = await inside(workspace, path).catch((error: Refusal) =>
    refuse('invalid', `attachments: ${error.message}`, {
      errors: [{ path: 'attachments', expected: 'a path inside the workspace' }],
    }),
  )
  if (!(await stat(file)).isFile()) refuse('invalid', `attachments: expected a file at ${path}, found a folder`)
}
