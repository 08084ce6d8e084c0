import type { AvailableCommand } from '@agentclientprotocol/sdk'
import type { AgentChange, ExpectedTips } from '../../../../plugins/agents/contract.js'
import type { Client } from '../../../client.js'
import { Refusal } from '../../../refusal.js'
import { mintConversation } from '../../follow/turn.js'
import { counted, oneLine, short } from '../../terminal/text.js'
import { shownTips, landingLines, owedOf } from '../fleet.js'
import { editorPath } from './daemons.js'
import { agentWords, type SessionChange } from './updates.js'

/** The commands of a session that the sandbox carries out, beside those of the agent. */
export const SESSION_COMMANDS: readonly AvailableCommand[] = [
  { name: 'diff', description: 'Show what this conversation has changed' },
  { name: 'land', description: 'Bring its work into the workspace as uncommitted changes' },
  { name: 'discard', description: 'Drop its work and close it; what was landed stays' },
  { name: 'compact', description: "Shorten the model's context", input: { hint: 'what to keep' } },
  { name: 'rename', description: 'Give the conversation a title', input: { hint: 'title' } },
  { name: 'fork', description: 'Go on in a new conversation with the same messages', input: { hint: 'message' } },
  {
    name: 'rewind',
    description: 'Go back to before a message, with its files',
    input: { hint: 'number of a message' },
  },
]

/** The commands of a session, and after them those of its agent. */
export const commandsChange = (
  items: readonly { readonly name: string; readonly description: string; readonly hint?: string }[],
): SessionChange => {
  const own = new Set(SESSION_COMMANDS.map(({ name }) => name))
  const ofAgent = items
    .filter(({ name }) => !own.has(name))
    .map(({ name, description, hint }) => ({ name, description, ...(hint && { input: { hint } }) }))
  return { sessionUpdate: 'available_commands_update', availableCommands: [...SESSION_COMMANDS, ...ofAgent] }
}

/** The work that a person was shown and has not sent a message since. */
export interface SeenWork {
  tips?: ExpectedTips
}

/** A conversation in which a command runs. */
export interface SessionCommandPlace {
  readonly client: Client
  readonly root: string
  readonly id: string
  readonly signal: AbortSignal
  readonly seen: SeenWork
  show(...changes: SessionChange[]): Promise<void>
  /** Asks for a yes. */
  confirmed(title: string, text: string): Promise<boolean>
  renamed(title: string): Promise<void>
}

type Run = (place: SessionCommandPlace, text: string) => Promise<string>

const MOST_FILES = 200

const diff: Run = async ({ client, root, id, signal, seen, show }) => {
  const { repos, conflicts } = await client.call('GET /agents/{id}/diff', { id }, { signal })
  const all = repos.flatMap(({ repo, changes }) => changes.map(change => ({ repo, change })))
  seen.tips = shownTips({ repos })
  if (all.length === 0) return 'Nothing was changed.'
  const run = `diff-${Date.now().toString(36)}`
  for (const [at, { repo, change }] of all.slice(0, MOST_FILES).entries()) {
    const inRoot = repo === 'root' ? change.path : `${repo}/${change.path}`
    const path = editorPath(root, inRoot)
    const sides = await client
      .call('GET /agents/{id}/{repo}/file-diff', { id, repo, path: change.path }, { signal })
      .catch((error: unknown) => (error instanceof Refusal ? error : Promise.reject(error)))
    const said =
      sides instanceof Refusal ? `It cannot be shown: ${sides.message}` : sides.binary ? 'It is binary.' : undefined
    await show({
      sessionUpdate: 'tool_call',
      toolCallId: `${run}/${at}`,
      title: headOf(inRoot, change),
      kind: change.status === 'deleted' ? 'delete' : 'edit',
      status: 'completed',
      locations: [{ path }],
      content:
        said !== undefined || sides instanceof Refusal
          ? [{ type: 'content', content: { type: 'text', text: said ?? '' } }]
          : [
              {
                type: 'diff',
                path,
                newText: sides.after ?? '',
                ...(sides.before !== undefined && { oldText: sides.before }),
              },
            ],
    })
  }
  const owed = owedOf({ repos }).length
  const rest = all.length > MOST_FILES ? ` The first ${MOST_FILES} are shown.` : ''
  const blocked = conflicts ? ' It does not land today: files conflict with the workspace.' : ''
  return `${counted(all.length, 'file')} changed, ${owed} not in the workspace yet.${rest}${blocked}`
}

const headOf = (path: string, { status, additions, deletions, landed }: AgentChange): string => {
  const counts = additions === undefined && deletions === undefined ? '' : ` +${additions ?? 0} -${deletions ?? 0}`
  return `${status} ${oneLine(path)}${counts}${landed ? ', landed' : ''}`
}

/** After a diff exactly what it showed lands. */
const land: Run = async ({ client, id, signal, seen }) => {
  const changes = await client.call('GET /agents/{id}/diff', { id }, { signal })
  const outstanding = owedOf(changes).filter(({ tooLarge }) => tooLarge === undefined).length
  const result = await client.call(
    'POST /agents/{id}/land',
    { id, expect: seen.tips ?? shownTips(changes) },
    { signal },
  )
  delete seen.tips
  return landingLines(result, outstanding, false).join('\n')
}

const discard: Run = async ({ client, id, signal, confirmed }) => {
  const changes = await client.call('GET /agents/{id}/diff', { id }, { signal })
  const owed = owedOf(changes).length
  if (owed > 0) {
    const lost = `${counted(owed, 'file')} ${owed === 1 ? 'is' : 'are'} not in the workspace, and would be lost.`
    if (!(await confirmed('Discard the work', lost))) return 'Nothing was discarded.'
  }
  await client.call('POST /agents/{id}/discard', { id, expect: shownTips(changes) }, { signal })
  return 'The work is discarded and the conversation is closed; a new message begins it anew.'
}

const rename: Run = async ({ client, id, signal, renamed }, text) => {
  const title = text.trim()
  if (!title) throw new Refusal('invalid', 'expected /rename TITLE, found no title')
  const card = await client.call('POST /agents/{id}/rename', { id, title }, { signal })
  await renamed(card.title ?? title)
  return `It is called ${oneLine(card.title ?? title)} now.`
}

const fork: Run = async ({ client, id, signal }, text) => {
  const prompt = text.trim()
  if (!prompt) throw new Refusal('invalid', 'expected /fork MESSAGE, found no message')
  const { branch, permissionMode, provider, model, effort } = await client.call('GET /agents/{id}', { id }, { signal })
  const same = {
    agent: provider,
    ...(permissionMode && { permissionMode }),
    ...(model !== undefined && { model }),
    ...(effort !== undefined && { effort }),
  }
  const { total } = await client.call('GET /agents/{id}/transcript', { id, limit: 1 }, { signal })
  const forkOf = { conversationId: id, keep: total, files: 'now' as const }
  const conversationId = mintConversation()
  const isolated = branch !== undefined && { isolated: true }
  await client.call('POST /agent', { prompt, conversationId, forkOf, ...same, ...isolated }, { signal })
  return `The conversation ${conversationId} goes on with it; it is in the list of sessions.`
}

const rewind: Run = async ({ client, id, signal, confirmed }, text) => {
  const { messages } = await client.call('GET /agents/{id}/transcript', { id }, { signal })
  const sent = messages.filter(({ role, checkpointId }) => role === 'user' && checkpointId !== undefined)
  const number = text.trim()
  if (!number) {
    if (sent.length === 0) return 'There is no message to go back to.'
    const lines = sent.slice(-20).map(message => `- ${message.index}: ${oneLine(short(message.text, 60))}`)
    return ['Go back to before one of these with /rewind NUMBER:', ...lines].join('\n')
  }
  if (!/^\d{1,9}$/.test(number))
    throw new Refusal('invalid', `expected /rewind NUMBER, found ${oneLine(number.slice(0, 80))}`)
  const newest = messages.at(-1)?.run
  const { branch } = await client.call('GET /agents/{id}', { id }, { signal })
  const lost =
    `Message ${number} and everything after it are dropped, with the work that came with them`
    + (branch === undefined ? ', and what anybody has changed in the workspace since is taken back.' : '.')
  if (!(await confirmed('Go back', lost))) return 'Nothing was dropped.'
  const { dropped } = await client.call(
    'POST /agent/rewind',
    { conversationId: id, index: Number(number), ...(newest !== undefined && { expect: newest }) },
    { signal },
  )
  return `Back to before message ${number}: ${counted(dropped, 'message')} dropped. Open the session again to see it.`
}

const COMMANDS: { readonly [name: string]: Run } = { diff, land, discard, rename, fork, rewind }

/** Carries out a message that is a command of the session; undefined: the message is for the agent. */
export const runSessionCommand = (prompt: string, place: SessionCommandPlace): Promise<void> | undefined => {
  const [, name = '', text = ''] = /^\/(\w+)(?:\s+([^]*))?$/.exec(prompt.trim()) ?? []
  if (!Object.hasOwn(COMMANDS, name)) return undefined
  return COMMANDS[name]!(place, text).then(said => place.show(agentWords(said)))
}
