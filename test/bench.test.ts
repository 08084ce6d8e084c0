import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { EVERY_CASE, spread } from './support/lists.js'
import { OPENCODE } from './support/peers.js'

const ended = async (...args: string[]): Promise<{ code: number; out: string; errors: string }> => {
  const all = fileURLToPath(new URL('bench/all.js', import.meta.url))
  const child = spawn(process.execPath, [all, '--quick', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const [out, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number]>,
  ])
  return { code, out, errors }
}

/** What the table must say of each, whatever the figures are. A test of the page's budgets does what its bench does. */
const ROWS = {
  request: /\| request: throughput of the whole .* doing the same \| .* \| at least 1\.00x \| (?:reached|missed) \|/,
  frames: /\| replay from the file, speed to a raw socket by the processor \| /,
  start: /\| start: a plugin, the mean of \d+, by the processor \| /,
  turns: /\| an idle watcher of the daemon \| /,
  events: /\| 20 readers of events: loop delay p99 \| /,
  spawn: /\| spawn: .*, the loop stands still \| /,
  mask: /\| mask: 2,000 deltas a second, .* \| at most 2.00 % \| (?:reached|missed) \|/,
  git: /\| git: a blob to a spawn of git \| /,
  'writes/inventory': /\| inventory: a change to git commit \| .* \| at most 1\.30x \| (?:reached|missed) \|/,
  workspace: /\| workspace: recall@5 of 6 questions in mode q \| /,
  large: /\| large: files that their pages leave out \| 0 \| at most 0 \| reached \|/,
  programs: /\| programs: the daemon, resident, with 2 turns in programs at once \| /,
  sessions: /\| a page of 50 sessions, each for the first time \| .* \| at most 100 ms \| (?:reached|missed) \|/,
  copies: /both sides of one file/,
  peer: OPENCODE ? /\| peer: a turn in a private copy to one without of OpenCode \| / : /OpenCode is not installed/,
  native: /\| native: ollama, first frame later than a bare fetch \| /,
}

/** Those that are short, and show that figures, targets and the table are right; a whole run has half of the others. */
const SHORT = ['frames', 'spawn', 'mask']
const LONGER = Object.keys(ROWS).filter(name => !SHORT.includes(name))
const RUN = new Set([...SHORT, ...spread(LONGER, 0, LONGER.length / 2)])

t.jobs = 2
t.setTimeout(200_000)
const beside = { buffered: true }
for (const [name, row] of Object.entries(ROWS)) {
  if (!RUN.has(name)) continue
  t.test(`the bench ${name} runs to its end and says how its targets stand`, beside, async t => {
    const { code, out, errors } = await ended(name)
    t.equal(code, 0, errors)
    t.match(out, row)
  })
}

if (EVERY_CASE)
  t.test('the bench roster runs to its end', beside, async t =>
    t.match(await ended('roster'), { code: 0, out: /search, first after a restart/ }),
  )

t.test('the bench usage runs to its end', beside, async t =>
  t.match(await ended('usage'), { code: 0, out: /a turn recorded, flushed/ }),
)

t.test('a bench that is not there is refused', async t => {
  t.match(await ended('requests'), { code: 2, errors: /expected names of request, .*found requests/ })
})
