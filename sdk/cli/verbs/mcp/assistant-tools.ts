import type { InputRequiredResult, ServerContext } from '@modelcontextprotocol/server'
import type { Card, Frame, PermissionMode } from '../../../../plugins/agent/contract.js'
import type { Client } from '../../../client.js'
import { Refusal } from '../../../refusal.js'
import { replyFrom } from '../../follow/cards.js'
import { compare, hunks } from '../../follow/patch.js'
import { mintConversation, startTurn } from '../../follow/turn.js'
import { modeNamed } from '../acp/choices.js'
import { shownTips } from '../fleet.js'
import {
  optionalNumber,
  optionalText,
  neededText,
  neededTips,
  neededWords,
  type ToolArguments,
} from './assistant-input.js'
import { shownCard, waitFor } from './assistant-wait.js'

/** What a tool works with. */
export interface ToolCallContext {
  readonly client: Client
  /** Whether new conversations work in private copies. */
  readonly copies: boolean
  /** Whether the client of the assistant shows forms. */
  readonly forms: boolean
  readonly context: ServerContext
}

/** A tool of an assistant. */
export interface AssistantTool {
  readonly description: string
  readonly input: { readonly [name: string]: object }
  readonly needs: readonly string[]
  readonly readOnly?: true
  readonly destructive?: true
  run(args: ToolArguments, how: ToolCallContext): Promise<object | InputRequiredResult>
}

const text = (description: string) => ({ type: 'string', description })
const CONVERSATION = text('The id of the conversation')
const EXPECT = {
  type: 'object',
  additionalProperties: { type: 'string' },
  description: 'The tips that diff answered: exactly that work is meant',
}
/** Whether a conversation is there; one that may not be read begins anew, apart from everything. */
const isKnown = (client: Client, id: string): Promise<boolean> =>
  client.call('GET /agents/{id}', { id }).then(
    () => true,
    error => (error instanceof Refusal ? false : Promise.reject(error)),
  )

const MOST_SECONDS = 600
const MOST_FRAMES = 500

/** The tools that an assistant gets. */
export const ASSISTANT_TOOLS: { readonly [name: string]: AssistantTool } = {
  run: {
    description:
      'Send a message to an agent in the sandbox, in a new conversation or one that there is. It works in a private '
      + 'copy of the code. Answers at once; use wait for the result.',
    input: {
      prompt: text('What the agent is to do'),
      conversation: text('The conversation to go on in; left out: a new one'),
      agent: text('The provider; left out: the usual one'),
      model: text('The model'),
      mode: { type: 'string', enum: ['default', 'acceptEdits', 'plan', 'bypassPermissions'] },
    },
    needs: ['prompt'],
    run: async (args, { client, copies }) => {
      const conversation = optionalText(args, 'conversation')
      const isNew = conversation === undefined || !(await isKnown(client, conversation))
      const [agent, model] = [optionalText(args, 'agent'), optionalText(args, 'model')]
      const mode: PermissionMode | undefined = args.mode === undefined ? undefined : modeNamed(args.mode)
      return startTurn(
        { client, url: '' },
        {
          prompt: neededText(args, 'prompt'),
          conversationId: conversation ?? mintConversation(),
          ...(isNew && copies && { isolated: true }),
          ...(agent !== undefined && { agent }),
          ...(model !== undefined && { model }),
          ...(mode && { permissionMode: mode }),
        },
      )
    },
  },
  wait: {
    description:
      'Wait until the turn of a conversation ends or asks something, and say what it said. State "waits" means that '
      + 'cards are open: use answer. State "running" means that the time is over: wait again.',
    input: {
      conversation: CONVERSATION,
      seconds: { type: 'integer', minimum: 0, maximum: MOST_SECONDS, description: '60 when left out' },
    },
    needs: ['conversation'],
    run: (args, { client, context, forms }) => {
      const seconds = optionalNumber(args, 'seconds', 0, MOST_SECONDS) ?? 60
      return waitFor(client, neededText(args, 'conversation'), seconds * 1000, context, forms)
    },
  },
  frames: {
    description: 'Read what the newest turn of a conversation did, frame by frame, from a position on',
    input: {
      conversation: CONVERSATION,
      after: { type: 'integer', minimum: 0, description: 'The position that an earlier call answered' },
      limit: { type: 'integer', minimum: 1, maximum: MOST_FRAMES, description: '100 when left out' },
    },
    needs: ['conversation'],
    readOnly: true,
    run: (args, { client, context }) =>
      framesOf(
        client,
        neededText(args, 'conversation'),
        optionalNumber(args, 'after', 0, Number.MAX_SAFE_INTEGER) ?? 0,
        optionalNumber(args, 'limit', 1, MOST_FRAMES) ?? 100,
        context.mcpReq.signal,
      ),
  },
  conversations: {
    description: 'List the conversations of the sandbox with their state, newest first',
    input: {},
    needs: [],
    readOnly: true,
    run: async (_args, { client }) => {
      const { agents } = await client.call('GET /agents')
      return {
        conversations: agents
          .toSorted((one, other) => other.updatedAt - one.updatedAt)
          .slice(0, 200)
          .map(({ id, title, status, provider, model, updatedAt, diff }) => ({
            ...{ id, title, status, provider, model, diff },
            updatedAt: new Date(updatedAt).toISOString(),
          })),
      }
    },
  },
  cards: {
    description: 'List the questions, plans and permissions that wait for an answer',
    input: { conversation: text('Only those of this conversation') },
    needs: [],
    readOnly: true,
    run: async (args, { client }) => {
      const conversationId = optionalText(args, 'conversation')
      const { cards } = await client.call('GET /agent/cards', conversationId === undefined ? {} : { conversationId })
      return { cards: cards.map(one => ({ conversation: one.conversationId, ...shownCard(one.card) })) }
    },
  },
  answer: {
    description:
      'Answer a card, except offers, which only a person answers; where wait asks the person, only questions. A '
      + 'question takes one text for each question (a label or own words); a plan "yes", or "no" and what to change; a '
      + 'permission "once", "always" or "deny"; everything else "yes" or "no".',
    input: {
      conversation: CONVERSATION,
      card: text('The id of the card'),
      answer: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 20 },
    },
    needs: ['conversation', 'card', 'answer'],
    run: async (args, { client, forms }) => {
      const [conversationId, id] = [neededText(args, 'conversation'), neededText(args, 'card')]
      const words = neededWords(args, 'answer')
      const { cards } = await client.call('GET /agent/cards', { conversationId })
      const found = cards.find(({ card }) => card.requestId === id)
      if (!found) throw new Refusal('not-found', `card: no card ${id.slice(0, 80)} waits in ${conversationId}`)
      assertForAssistant(found.card, forms)
      return client.call('POST /agent/reply', replyFrom(found.card, words))
    },
  },
  stop: {
    description: 'Stop the turn of a conversation; files already written stay written',
    input: { conversation: CONVERSATION },
    needs: ['conversation'],
    run: (args, { client }) => client.call('POST /agent/stop', { conversationId: neededText(args, 'conversation') }),
  },
  diff: {
    description:
      'Show what a conversation changed: its files, or with path the lines of one. The tips are what land and discard '
      + 'take as expect.',
    input: {
      conversation: CONVERSATION,
      path: text('A file of the list'),
      repository: text('Its repository, as the list names it; left out: root'),
    },
    needs: ['conversation'],
    readOnly: true,
    run: async (args, { client }) => {
      const [id, path] = [neededText(args, 'conversation'), optionalText(args, 'path')]
      const repo = optionalText(args, 'repository') ?? 'root'
      if (path === undefined) {
        const changes = await client.call('GET /agents/{id}/diff', { id })
        const files = changes.repos.flatMap(one =>
          one.changes.map(({ path, status, additions, deletions, landed }) => ({
            ...{ repository: one.repo, path, status, additions, deletions, landed },
          })),
        )
        return { files, expect: shownTips(changes), ...(changes.conflicts && { conflicts: changes.conflicts }) }
      }
      const sides = await client.call('GET /agents/{id}/{repo}/file-diff', { id, repo, path })
      if (sides.binary) return { path, binary: true }
      const lines = hunks(compare(sides.before ?? '', sides.after ?? ''))
      return { path, lines: lines.join('\n'), ...(sides.truncated && { truncated: true }) }
    },
  },
  comment: {
    description: 'Comment a line or a file of the diff; the agent gets the comment as a message and goes on',
    input: {
      conversation: CONVERSATION,
      path: text('The file'),
      line: { type: 'integer', minimum: 1 },
      comment: text('What is to change'),
    },
    needs: ['conversation', 'path', 'comment'],
    run: async (args, { client }) => {
      const conversationId = neededText(args, 'conversation')
      const [path, comment] = [neededText(args, 'path'), neededText(args, 'comment')]
      const line = optionalNumber(args, 'line', 1, Number.MAX_SAFE_INTEGER)
      await client.call('GET /agents/{id}', { id: conversationId })
      const prompt = `About ${path}${line === undefined ? '' : `, line ${line}`}:\n\n${comment.trim()}`
      return startTurn({ client, url: '' }, { conversationId, prompt })
    },
  },
  land: {
    description: 'Bring exactly the work that diff showed into the workspace, as uncommitted changes',
    input: { conversation: CONVERSATION, expect: EXPECT },
    needs: ['conversation', 'expect'],
    run: (args, { client }) =>
      client.call('POST /agents/{id}/land', { id: neededText(args, 'conversation'), expect: neededTips(args) }),
  },
  discard: {
    description: 'Drop exactly the work that diff showed, with the conversation; what was landed stays',
    input: { conversation: CONVERSATION, expect: EXPECT },
    needs: ['conversation', 'expect'],
    destructive: true,
    run: (args, { client }) =>
      client.call('POST /agents/{id}/discard', { id: neededText(args, 'conversation'), expect: neededTips(args) }),
  },
}

/** Refuses cards that a person answers: what costs money or connects something, and all that `wait` asks them. */
const assertForAssistant = ({ kind }: Card, forms: boolean): void => {
  if (kind === 'question' || !(forms || kind.endsWith('_offer'))) return
  const where = forms ? 'whom wait asks' : 'in the console or with "sandbox answer"'
  throw new Refusal('forbidden', `card: expected a person to answer a ${kind}, ${where}`)
}

/** The frames that there are after a position, at most so many; ends before frames that are still to come. */
const framesOf = async (
  client: Client,
  conversationId: string,
  after: number,
  limit: number,
  asked: AbortSignal,
): Promise<object> => {
  const enough = new AbortController()
  const signal = AbortSignal.any([asked, enough.signal])
  const frames: Frame[] = []
  let [run, known, last] = ['', 0, after]
  try {
    for await (const event of await client.call('POST /agent/attach', { conversationId }, { signal })) {
      if (event.kind === 'attached') {
        run = event.run
        known = event.seq
        if (known <= after) break
      }
      if (event.kind !== 'frame') continue
      if (event.seq > after) {
        frames.push(event.event)
        last = event.seq
      }
      if (frames.length === limit || event.seq >= known) break
    }
  } finally {
    enough.abort()
  }
  return { run, frames, after: last, more: last < known }
}
