import type { Queue } from '../queue/queue.js'
import type { SpokenPiece } from './contract.js'
import type { Engine } from './engine.js'

/** The words of a run as it says them; waits until a queued run starts. */
export async function* spoken(
  { engine, queue }: { readonly engine: Engine; readonly queue: Queue },
  { conversationId, run }: { readonly conversationId: string; readonly run: string },
  signal: AbortSignal,
): AsyncGenerator<SpokenPiece, void> {
  const isWaiting = queue.waiting(conversationId).some(waiting => waiting.run === run)
  if (isWaiting && !(await engine.arrivals.wait(run, signal))) return
  const turn = engine.live(conversationId)
  if (turn?.run !== run) return
  const pieces = [turn.record.prose].filter(text => text !== '')
  /** What was said before is a block of its own. */
  let isApart = pieces.length > 0 && !turn.record.speaking
  let wake = Promise.withResolvers<void>()
  let over = false
  const off = turn.onFrame(frame => {
    if ((frame.kind !== 'delta' && frame.kind !== 'text_end') || frame.parentToolUseId !== undefined) return
    if (frame.kind === 'text_end') return void (isApart = true)
    pieces.push(isApart ? `\n\n${frame.text}` : frame.text)
    isApart = false
    wake.resolve()
  })
  const end = () => {
    over = true
    wake.resolve()
  }
  void turn.ended.then(end)
  signal.addEventListener('abort', end, { once: true })
  try {
    while (!over || (pieces.length > 0 && !signal.aborted)) {
      const text = pieces.splice(0).join('')
      if (text) yield { text }
      else {
        await wake.promise
        wake = Promise.withResolvers<void>()
      }
    }
  } finally {
    off()
    signal.removeEventListener('abort', end)
  }
}
