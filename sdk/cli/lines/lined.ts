import { wantsJson } from '../arguments.js'
import { exitFor, interrupted } from '../exit-codes.js'
import { jsonLine } from '../terminal/text.js'
import { say, write } from '../terminal/write.js'
import type { Terminal } from '../verb.js'
import { asResults } from './lines.js'

/** Verbs that print lines with a `kind` whenever they print JSON; the others do so in a run that a daemon started. */
const LINED = new Set(['version', 'commands', 'contract', 'deploy'])
/** Verbs whose name has two words. */
const OF_TWO_WORDS = new Set(['deploy'])

/** Runs a command between a line that says that it starts and one that says how it ended; undefined: without. */
export const lined = async (
  args: readonly string[],
  terminal: Terminal,
  work: (terminal: Terminal) => Promise<number>,
): Promise<number | undefined> => {
  const [verb = '', second] = args
  if (!wantsJson(args) || (!LINED.has(verb) && !terminal.env.SANDBOX_RUN_TOKEN)) return undefined
  const command = OF_TWO_WORDS.has(verb) && second !== undefined ? `${verb} ${second}` : verb
  const print = (line: object) => write(terminal, jsonLine(line))
  await print({ kind: 'start', command, startedAt: Date.now() })
  const own = LINED.has(verb) ? terminal : { ...terminal, out: asResults(terminal.out) }
  const code = await work(own).catch(async (error: unknown) => {
    if (terminal.signal.aborted) return interrupted(terminal.signal.reason)
    const { code: failed, message } = exitFor(error)
    await print({ kind: 'error', message })
    say(terminal, `${message}\n`)
    return failed
  })
  await print({ kind: 'exit', command, code })
  return code
}
