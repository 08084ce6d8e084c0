import { setTimeout as sleep } from 'node:timers/promises'
import type { Started } from '../../../plugins/agent/contract.js'
import type { Client } from '../../client.js'
import { connected } from '../daemon/connection.js'
import { checkTurn, newConversation, startTurn, TURN, turnOf } from '../follow/turn.js'
import { jsonLine, oneLine } from '../terminal/text.js'
import { durationOf } from '../terminal/when.js'
import { write } from '../terminal/write.js'
import { CONNECTION, EXIT, misused, type Terminal, type Verb } from '../verb.js'
import { words } from './run.js'

const LOOK_MS = 1_000

/** How a step ended, as steps of workflows end, and the exit code that says so to a pipeline. */
const CODES = {
  completed: EXIT.ok,
  failed: EXIT.failed,
  timeout: EXIT.failed,
  parked: EXIT.waits,
  refused: EXIT.refused,
} as const
type StepEnd = keyof typeof CODES

interface StepResult {
  readonly step: StepEnd
  readonly detail?: string
}

/** A turn as a step of a pipeline: started, awaited, and landed when asked. */
export const ciStep: Verb = {
  name: 'ci-step',
  usage: '"PROMPT"',
  summary: 'a step of a pipeline: start a turn, wait for its end, and land its work when asked',
  examples: ['ci-step "update the changelog" --land --timeout 20m'],
  notes: [
    'It exits with 0 when the turn completed (and landed, or had nothing to land), 4 when it waits for an answer of a '
      + 'person, 5 when its work conflicts with the workspace and did not land, 1 when the turn failed or is not over '
      + 'after --timeout; it goes on then.',
    'SANDBOX_URL and SANDBOX_TOKEN name the daemon and a control token, which needs the scope land for --land.',
  ],
  flags: {
    conversation: { value: 'ID', help: 'the conversation to write in; default: a new one' },
    land: { help: 'land the work in the workspace' },
    timeout: { value: 'TIME', help: 'how long to wait, such as 90s or 10m; default: until the turn ends' },
    ...TURN,
    ...CONNECTION,
  },
  most: Infinity,
  run: async (terminal, given) => {
    const prompt = given.args.length === 1 ? await words(terminal, given.args[0]!) : given.args.join(' ')
    if (!prompt.trim()) misused('expected a prompt, found nothing')
    const conversationId = newConversation(given, 'conversation')
    checkTurn(given)
    const patience = given.text('timeout')
    const until = patience === undefined ? Infinity : Date.now() + durationOf(patience, '--timeout')
    return connected(terminal, given, async connection => {
      const { client } = connection
      const started = await startTurn(connection, await turnOf(terminal, connection, given, prompt, conversationId))
      const waited = await endOf(terminal, client, started, until)
      const lands = waited.step === 'completed' && given.on('land')
      const { step, detail } = lands ? await landed(terminal, client, started) : waited
      const shown = detail === undefined ? '' : `: ${oneLine(detail)}`
      const result = { conversationId: started.conversationId, run: started.run, step }
      const line = `${step} (conversation ${oneLine(started.conversationId)})${shown}\n`
      await write(terminal, given.on('json') ? jsonLine({ ...result, ...(detail !== undefined && { detail }) }) : line)
      return CODES[step]
    })
  },
}

/** Waits until a run is over, waits for a person, or the time has passed. */
const endOf = async (
  { signal }: Pick<Terminal, 'signal'>,
  client: Client,
  { conversationId, run: asked }: Started,
  until: number,
): Promise<StepResult> => {
  for (;;) {
    const card = await client.call('GET /agents/{id}', { id: String(conversationId) }, { signal })
    const { run, lastEnd, failure, cards = [], waiting = 0 } = card
    if (cards.length > 0) return { step: 'parked', ...(cards[0]?.title && { detail: cards[0].title }) }
    if (lastEnd !== undefined && (run === asked || waiting === 0))
      return lastEnd === 'completed'
        ? { step: 'completed' }
        : { step: 'failed', detail: failure ?? `it was ${lastEnd}` }
    if (Date.now() >= until) return { step: 'timeout' }
    await sleep(Math.min(LOOK_MS, until - Date.now()), undefined, { signal })
  }
}

/** Lands the work of a turn. */
const landed = async (
  { signal }: Pick<Terminal, 'signal'>,
  client: Client,
  { conversationId }: Started,
): Promise<StepResult> => {
  const id = String(conversationId)
  const { repos } = await client.call('GET /agents/{id}/diff', { id }, { signal })
  const expect = Object.fromEntries(repos.map(({ repo, tip }) => [repo, tip]))
  const done = await client.call('POST /agents/{id}/land', { id, expect }, { signal })
  return done.landed ? { step: 'completed' } : { step: 'refused', detail: 'the work conflicts with the workspace' }
}
