import type { Frame } from '../../../plugins/agent/contract.js'
import type { RunningDaemon } from '../../support/daemon.js'

/** The kinds of frames that wait for an answer. */
export const CARDS: ReadonlySet<string> = new Set(['plan', 'question', 'permission'])

/** The complete events of a stream or of a run's log. */
export const blocksOf = (text: string): string[] => text.split('\n\n').slice(0, -1)

/** The frame that an event carries, and its position; undefined for every other event. */
export const frameIn = (block: string): { run: string; seq: number; event: Frame } | undefined => {
  const [, run, seq, data] = /^id: (.+):(\d+)\nevent: message\ndata: (.*)$/.exec(block) ?? []
  return run && data ? { run, seq: Number(seq), event: (JSON.parse(data) as { event: Frame }).event } : undefined
}

/** The faults in the frames of a run that has ended. */
export const wholeness = (frames: readonly Frame[]): string[] => {
  const faults: string[] = []
  const done = frames.flatMap((frame, index) => (frame.kind === 'done' ? [index] : []))
  if (done.length !== 1 || done[0] !== frames.length - 1) faults.push(`done is at ${done.join()} of ${frames.length}`)
  const resolved = frames.flatMap(frame => (frame.kind === 'resolved' ? [frame.requestId] : []))
  const raised = frames.flatMap(frame => (CARDS.has(frame.kind) ? [(frame as { requestId: string }).requestId] : []))
  if (String(raised.sort()) !== String(resolved.sort()))
    faults.push(`cards ${raised.join()} were resolved ${resolved.join()}`)
  const open = new Set<string>()
  for (const frame of frames) {
    if (frame.kind === 'tool_call') open.add(frame.id)
    if (frame.kind === 'tool_call_update' && (frame.status === 'completed' || frame.status === 'failed'))
      open.delete(frame.id)
  }
  if (open.size) faults.push(`calls ${[...open].join()} are open`)
  const steers = frames.flatMap(frame => (frame.kind === 'steer' ? [frame.messageId] : []))
  if (new Set(steers).size !== steers.length) faults.push(`steered messages were delivered twice: ${steers.join()}`)
  return faults
}

/** The frames of every run that watchers received, byte for byte and across restarts. */
export class Streams {
  readonly faults: string[] = []
  readonly #runs = new Map<string, string[]>()
  readonly #ends = new Map<string, string>()
  /** The number of frames that watchers received. */
  shown = 0

  /** The end of a run, if a watcher received it. */
  end(run: string): string | undefined {
    return this.#ends.get(run)
  }

  /** The frames of a run, as watchers received them. */
  seen(run: string): readonly string[] {
    return this.#runs.get(run) ?? []
  }

  /** Counts the frames in a run's log as received. */
  stored(run: string, blocks: readonly string[]): void {
    const frames = blocks.filter(block => block.startsWith('id: '))
    for (const [index, block] of frames.entries()) this.#frame(run, index + 1, block)
    const known = this.seen(run).length
    if (frames.length < known) this.faults.push(`${run}: there were ${known} frames, and ${frames.length} are left`)
  }

  /**
   * Watches the newest run, or the given one, from its first frame until it ends, is interrupted or `until` holds;
   * returns the run once it has ended.
   */
  async watch(
    { url, session }: RunningDaemon,
    conversationId: string,
    { run, onFrame, until }: { run?: string; onFrame?: (frame: Frame) => void; until?: (frame: Frame) => boolean } = {},
  ): Promise<string | undefined> {
    let attached = ''
    let left = ''
    let last = 0
    try {
      const response = await fetch(`${url}/agent/attach`, {
        method: 'POST',
        body: JSON.stringify({ conversationId, ...(run && { run }) }),
        headers: { authorization: `Bearer ${session}`, 'content-type': 'application/json' },
      })
      if (!response.ok || !response.body) return undefined
      for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
        const blocks = (left + piece).split('\n\n')
        left = blocks.pop() ?? ''
        for (const block of blocks) {
          const frame = frameIn(block)
          if (frame) {
            attached = frame.run
            if (frame.seq !== ++last) this.faults.push(`${attached}: received frame ${frame.seq} instead of ${last}`)
            this.#frame(attached, frame.seq, block)
            onFrame?.(frame.event)
            if (until?.(frame.event)) return undefined
          } else if (block.includes('event: done\n')) this.#over(attached)
        }
      }
    } catch {
      return undefined
    }
    return this.#ends.has(attached) ? attached : undefined
  }

  #frame(run: string, seq: number, block: string): void {
    this.shown++
    const known = this.#runs.get(run) ?? []
    this.#runs.set(run, known)
    if (seq === known.length + 1) known.push(block)
    else if (known[seq - 1] !== block) this.faults.push(`${run}: frame ${seq} was ${known[seq - 1]}, and is ${block}`)
  }

  #over(run: string): void {
    // A withdrawn message has no run.
    if (!run || this.#ends.has(run)) return
    const frames = this.seen(run).map(block => frameIn(block)!.event)
    for (const fault of wholeness(frames)) this.faults.push(`${run}: ${fault}`)
    const done = frames.at(-1)
    this.#ends.set(run, done?.kind === 'done' ? done.reason : 'unknown')
  }
}
