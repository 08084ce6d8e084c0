import type { Journals, Log } from '../../../sdk/index.js'
import type { TranscriptMessage } from '../contract.js'
import type { TurnRequest } from '../providers/adapter.js'
import type { Conversations } from '../conversations/conversations.js'
import { framesOf } from './frames/frame-log.js'
import type { Frame } from './frames/frames.js'
import { ownFrames } from '../subagents/frames.js'
import { DEFAULT_SUBAGENT_LIMITS } from '../subagents/subagents.js'
import type { Transcripts } from '../conversations/transcripts.js'
import { requestedBy } from '../personas/worn.js'
import type { Turn } from './turn.js'
import type { PreparedTurn } from './environment/environment.js'

/** Why a turn goes on after a restart, an outage or a move. */
export interface Resume {
  readonly reason: 'restart' | 'answered' | 'outage' | 'switched'
}

/** The sources of a turn's history. */
export interface RequestDeps {
  readonly host: { readonly journal: Journals; readonly log: Log }
  readonly conversations: Conversations
  readonly transcripts: Transcripts
}

/** Creates the request to the provider of a turn: the message, the tree and the history. */
export const requestOf = async (
  deps: RequestDeps,
  turn: Turn,
  prepared: PreparedTurn,
  resume: Resume | undefined,
): Promise<TurnRequest> => {
  const { transcripts, host, conversations } = deps
  const { message, entry, run, conversationId } = turn
  const { harness, model, effort, thinking, fast, attempt, state, stateSeq, answered, round } = entry.fields
  const { input } = message
  const before = message.fresh ? [] : await transcripts.history(conversationId)
  const history = round ? [...before, ...soFar(turn)] : before
  const sessionId = sessionOf(conversations, turn)
  const since = resume && (await framesAfter(host.journal, turn, stateSeq ?? 0))
  turn.words.drop(
    new Set(since?.flatMap(frame => (frame.kind === 'steer' && frame.messageId ? [frame.messageId] : []))),
  )
  const replies = answered?.map(({ card, reply }) => ({ card, reply }))
  host.log.info('a turn is sent to its provider', { run, provider: entry.fields.provider, model })
  return {
    conversationId,
    run,
    attempt,
    depth: 0,
    harness,
    model,
    helpers: prepared.helpers ?? DEFAULT_SUBAGENT_LIMITS,
    permissionMode: turn.record.mode ?? entry.fields.permissionMode,
    ...wordsOf(turn, prepared),
    attended: message.attended,
    ...(message.document !== undefined && { document: message.document }),
    ...(effort !== undefined && { effort }),
    ...(thinking !== undefined && { thinking }),
    ...(fast !== undefined && { fast }),
    ...(round && { round: round.nth }),
    ...(input.editorContext && { editorContext: input.editorContext }),
    ...(prepared.allowedTools && { allowedTools: prepared.allowedTools }),
    ...requestedBy(prepared),
    ...(sessionId !== undefined && { sessionId }),
    ...(history.length && { history }),
    ...(state !== undefined && { state }),
    ...(since && { since }),
    ...(resume && { resume: { reason: resume.reason, ...(replies?.length && { replies }) } }),
  }
}

/** What the provider is told: the message, or in a later round what the rules say. */
const wordsOf = (
  { message: { input }, entry: { fields } }: Turn,
  { preamble, attachments, mentions }: PreparedTurn,
): Pick<TurnRequest, 'prompt' | 'words' | 'attachments' | 'mentions'> =>
  fields.round
    ? { prompt: fields.round.text, words: fields.round.text, attachments: [], mentions: [] }
    : { prompt: preamble + input.prompt, words: input.prompt, attachments, mentions }

/** The rows of the turn before this round, for a provider without a session. */
const soFar = ({ record, index }: Turn): TranscriptMessage[] =>
  record.rows.map((row, at) => ({ ...row, index: index + at }))

/** The session the conversation has with the provider and harness of a turn. */
const sessionOf = (
  conversations: Conversations,
  {
    conversationId,
    message: { fresh },
    record,
    entry: {
      fields: { provider, harness },
    },
  }: Turn,
): string | undefined => {
  if (fresh) return record.sessionId
  const { session } = conversations.get(conversationId)
  return record.sessionId ?? (session?.provider === provider && session.harness === harness ? session.id : undefined)
}

const framesAfter = async (journal: Journals, turn: Turn, after: number): Promise<Frame[]> => {
  await turn.log.settled()
  const events = await journal.read<{ event: Frame }>(framesOf(turn.run), after)
  return ownFrames(events.map(({ event }) => event))
}
