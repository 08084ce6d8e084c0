import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Frame } from '../../../plugins/agent/contract.js'
import { entryFrom, type EntryFields } from '../../../plugins/agent/turn/run-entry.js'
import { blocksOf, frameIn, type Streams } from './streams.js'

/** The files of one run in flight of a killed daemon, and how the next daemon has to continue it. */
export interface Found {
  readonly run: string
  readonly conversation: string
  readonly attempt: number
  readonly expected: 'over' | 'stopped' | 'parked' | 'open'
  /** What decides whether an open run resumes: an existing answer, the settings, or an earlier resume. */
  readonly decides: 'answer' | 'settings' | 'once'
  readonly reason: string | undefined
  /** Its work lands automatically: it ends after that, later than the start. */
  readonly lands: boolean
  readonly cards: readonly string[]
}

/** The frames of a run on the disk. */
export const storedFrames = (data: string, run: string): string[] => {
  const file = join(data, 'journals/agent/frames', `${run}.events`)
  return existsSync(file) ? blocksOf(readFileSync(file, 'utf8')) : []
}

const framesIn = (blocks: readonly string[]): Frame[] => blocks.flatMap(block => frameIn(block)?.event ?? [])

const fieldsIn = (file: string): EntryFields | undefined =>
  entryFrom(
    readFileSync(file, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map(line => JSON.parse(line) as unknown),
  )

/** Reads the disk after a kill; every frame on it counts as received. */
export const imageOf = (data: string, streams: Streams): Found[] => {
  for (const file of globSync(join(data, 'journals/agent/frames/*.events'))) {
    const run = basename(file, '.events')
    streams.stored(run, storedFrames(data, run))
  }
  return globSync(join(data, 'journals/agent/runs/*.jsonl')).flatMap((file): Found[] => {
    const fields = fieldsIn(file)
    if (!fields) return []
    const {
      message: { run, conversationId: conversation, input },
      attempt,
      boots,
      ending,
      stopping,
      parked,
    } = fields
    const frames = framesIn(storedFrames(data, run))
    const done = frames.find(frame => frame.kind === 'done')
    const resolved = new Set(frames.flatMap(frame => (frame.kind === 'resolved' ? [frame.requestId] : [])))
    const cards = parked.map(({ card }) => card.requestId).filter(id => !resolved.has(id))
    return [
      {
        run,
        conversation,
        attempt,
        cards,
        // Unless its message says so, the rules of the settings decide, once the daemon is ready.
        lands: input.autoLand !== false,
        reason: done?.kind === 'done' ? done.reason : ending,
        expected:
          done || ending ? 'over' : stopping ? 'stopped' : parked.length ? (cards.length ? 'parked' : 'open') : 'open',
        decides: parked.length ? 'answer' : boots < 1 ? 'settings' : 'once',
      },
    ]
  })
}

/** The faults in how a start continued a run in flight; `goesOn`: the possible values of the setting. */
export const fateFaults = (data: string, found: Found, goesOn: readonly boolean[], gone: boolean): string[] => {
  const { run, conversation, attempt, expected, decides, reason, cards } = found
  const frames = framesIn(storedFrames(data, run))
  // A newer run of the conversation has replaced these frames.
  if (!frames.length) return []
  const done = frames.find(frame => frame.kind === 'done')
  const end = done?.kind === 'done' ? done.reason : undefined
  const resumed = frames.some(frame => frame.kind === 'resumed' && frame.attempt === attempt + 1)
  const fault = (what: string) => [
    `${conversation} ${run}: ${what}; it ended ${end}, resumed ${resumed}, and was ${JSON.stringify(found)}`,
  ]
  if (gone) return fault('its conversation was removed, but its frames still exist')
  if (expected === 'over')
    return end === reason || (found.lands && end === undefined) ? [] : fault(`expected its end to be ${reason}`)
  if (expected === 'stopped')
    return end === 'stopped' || (found.lands && end === undefined) ? [] : fault('expected it to be stopped')
  if (expected === 'parked') {
    const raised = new Set(
      frames.flatMap(frame => ('requestId' in frame && frame.kind !== 'resolved' ? [frame.requestId] : [])),
    )
    return end === undefined && cards.every(card => raised.has(card)) ? [] : fault('expected it to wait for its cards')
  }
  const wentOn = end !== 'interrupted' && (decides === 'answer' || resumed)
  const wants = decides === 'settings' ? goesOn : [decides === 'answer']
  return wants.includes(wentOn) && (wentOn || end === 'interrupted')
    ? []
    : fault(`expected it to ${wants.join(' or ')} resume`)
}
