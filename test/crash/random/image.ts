import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Frame } from '../../../plugins/agent/contract.js'
import { entryFrom, type EntryFields } from '../../../plugins/agent/turn/run-entry.js'
import { blocksOf, frameIn, type Streams } from './streams.js'

/** What a killed daemon left of one run in flight, and what the next one has to make of it. */
export interface Found {
  readonly run: string
  readonly conversation: string
  readonly attempt: number
  readonly expected: 'over' | 'stopped' | 'parked' | 'open'
  /** What decides whether an open one goes on: an answer it has, the settings, or that it did so once before. */
  readonly decides: 'answer' | 'settings' | 'once'
  readonly reason: string | undefined
  /** Its work lands by itself: it ends when that is done, after the start. */
  readonly lands: boolean
  readonly cards: readonly string[]
}

/** The frames of a run as they lie on the disk. */
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

/** Reads the disk as a kill left it: every frame of it counts as seen. */
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
        lands: input.autoLand === true,
        reason: done?.kind === 'done' ? done.reason : ending,
        expected:
          done || ending ? 'over' : stopping ? 'stopped' : parked.length ? (cards.length ? 'parked' : 'open') : 'open',
        decides: parked.length ? 'answer' : boots < 1 ? 'settings' : 'once',
      },
    ]
  })
}

/** What is wrong with what a start made of a run in flight; `goesOn`: what the settings may have said. */
export const fateFaults = (data: string, found: Found, goesOn: readonly boolean[], gone: boolean): string[] => {
  const { run, conversation, attempt, expected, decides, reason, cards } = found
  const frames = framesIn(storedFrames(data, run))
  // A newer run of the conversation takes the place of these frames.
  if (!frames.length) return []
  const done = frames.find(frame => frame.kind === 'done')
  const end = done?.kind === 'done' ? done.reason : undefined
  const resumed = frames.some(frame => frame.kind === 'resumed' && frame.attempt === attempt + 1)
  const fault = (what: string) => [
    `${conversation} ${run}: ${what}; it ended ${end}, resumed ${resumed}, and was ${JSON.stringify(found)}`,
  ]
  if (gone) return fault('its conversation is gone and its frames are there')
  if (expected === 'over')
    return end === reason || (found.lands && end === undefined) ? [] : fault(`its end was ${reason}`)
  if (expected === 'stopped')
    return end === 'stopped' || (found.lands && end === undefined) ? [] : fault('it was to be stopped')
  if (expected === 'parked') {
    const raised = new Set(
      frames.flatMap(frame => ('requestId' in frame && frame.kind !== 'resolved' ? [frame.requestId] : [])),
    )
    return end === undefined && cards.every(card => raised.has(card)) ? [] : fault('it was to wait for its cards')
  }
  const wentOn = end !== 'interrupted' && (decides === 'answer' || resumed)
  const wants = decides === 'settings' ? goesOn : [decides === 'answer']
  return wants.includes(wentOn) && (wentOn || end === 'interrupted')
    ? []
    : fault(`it was to ${wants.join(' or ')} go on`)
}
