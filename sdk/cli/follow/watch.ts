import type { Client } from '../../client.js'
import { leftInBackground } from './background.js'
import { answering, type Followed, followRun, type OnCard } from './follow.js'
import { SELF } from '../terminal/own-name.js'
import { jsonLine, quoted, stylesOf } from '../terminal/text.js'
import { EXIT, type Flag, type GivenArguments, type Terminal } from '../verb.js'
import { durationOf } from '../terminal/when.js'
import { say, write } from '../terminal/write.js'

/** The options of verbs that follow a run: how to answer its cards, and how long to watch. */
export const WATCH: { readonly [name: string]: Flag } = {
  answer: {
    value: 'WORDS',
    multiple: true,
    help: 'the answer to the next card; repeat it for further cards or questions',
  },
  timeout: { value: 'TIME', help: 'stop watching after this time, such as 90s or 10m; the turn continues' },
  'no-input': { help: 'exit with code 4 at the first card without an --answer, as without a terminal' },
}

/**
 * Follows a run, with `onward` also the runs after it, and prints the next commands. With `leaves` it stops at a card
 * that has no answer.
 */
export const watched = async (
  terminal: Terminal,
  client: Client,
  given: GivenArguments,
  what: { conversationId: string; run?: string; after?: number },
  { onward = false, leaves = false } = {},
): Promise<number> => {
  const json = given.on('json')
  const { conversationId } = what
  const left = new AbortController()
  let waits = false
  const noInput = given.on('no-input')
  const seen = {
    ...terminal,
    interactive: terminal.interactive && !noInput,
    signal: AbortSignal.any([terminal.signal, left.signal]),
  }
  const answer = answering(seen, json, given.all('answer'))
  const onCard: OnCard = async (card, signal) => {
    waits = true
    // Answered elsewhere; the end of watching aborts it, too.
    signal.addEventListener('abort', () => (waits = left.signal.aborted), { once: true })
    const reply = await answer(card, signal)
    if (reply) waits = false
    else if (!signal.aborted && (leaves || noInput)) left.abort()
    return reply
  }
  const patience = given.text('timeout')
  const timer = patience === undefined ? undefined : setTimeout(() => left.abort(), durationOf(patience, '--timeout'))
  try {
    let followed = await followRun(seen, client, { json, onCard, ...pick(what) })
    while (onward && followed.next)
      followed = await followRun(seen, client, { json, onCard, conversationId, run: followed.next })
    if (!json) {
      const left = followed.ran ? await leftInBackground(client, conversationId, seen.signal) : undefined
      if (left !== undefined) await write(terminal, `${left}\n`)
      await write(terminal, nextSteps(conversationId, followed, what.after !== undefined, terminal.colour))
    }
    return followed.end === 'completed' ? EXIT.ok : EXIT.failed
  } catch (error) {
    if (!seen.signal.aborted) throw error
    const message =
      `the turn continues: ${SELF} attach ${conversationId} follows ` + `it, ${SELF} stop ${conversationId} stops it`
    say(
      terminal,
      json
        ? jsonLine({ message, reason: waits ? 'waits' : 'timeout', conversationId })
        : `${terminal.signal.aborted ? '\n' : ''}${message}\n`,
    )
    if (terminal.signal.aborted) throw error
    return waits ? EXIT.waits : EXIT.failed
  } finally {
    clearTimeout(timer)
  }
}

const pick = ({ conversationId, run, after }: { conversationId: string; run?: string; after?: number }) => ({
  conversationId,
  ...(run !== undefined && { run }),
  ...(after !== undefined && { after }),
})

/** Suggests the next commands; diff and land only for work in a private copy. */
const nextSteps = (conversation: string, { end, copy }: Followed, later: boolean, colour: boolean): string => {
  const { dim } = stylesOf(colour)
  const id = quoted(conversation)
  const again = `${SELF} run --conversation ${id} "…"`
  const isolated = copy || later
  const lines = !isolated
    ? [again]
    : end === 'completed'
      ? [`${SELF} diff ${id}`, `${SELF} land ${id}`]
      : [again, `${SELF} diff ${id}`]
  return `${dim(`next: ${lines.join('  or  ')}`)}\n`
}
