import { TokenRestorer } from '../access/token-restorer.js'
import type { StreamPart } from './model-call.js'

/** The tokens that were restored in an answer, how often each, and how many stood for nothing. */
export interface RestoredCounts {
  readonly restored: { readonly [token: string]: number }
  readonly unrestored: number
}

/** Restores the values of tokens in a streamed answer, also where pieces cut them. */
export const restoredAnswer = (
  values: ReadonlyMap<string, string>,
  over: (counts: RestoredCounts) => void,
): TransformStream<StreamPart, StreamPart> => {
  const all: TokenRestorer[] = []
  const made = (): TokenRestorer => {
    const restorer = new TokenRestorer(token => values.get(token))
    all.push(restorer)
    return restorer
  }
  type Delta = Extract<StreamPart, { type: 'text-delta' | 'reasoning-delta' }>
  let open: { readonly last: Delta; readonly restorer: TokenRestorer } | undefined
  const end = (out: TransformStreamDefaultController<StreamPart>): void => {
    const delta = open?.restorer.end()
    if (open && delta) out.enqueue({ type: open.last.type, id: open.last.id, delta })
    open = undefined
  }
  return new TransformStream<StreamPart, StreamPart>({
    transform: (part, out) => {
      if (part.type === 'text-delta' || part.type === 'reasoning-delta') {
        if (open?.last.type !== part.type || open.last.id !== part.id) end(out)
        open = { last: part, restorer: open?.restorer ?? made() }
        const delta = open.restorer.push(part.delta)
        if (delta || part.providerMetadata) out.enqueue({ ...part, delta })
        return
      }
      if (part.type !== 'raw' && part.type !== 'response-metadata') end(out)
      out.enqueue(part.type === 'tool-call' ? { ...part, input: made().json(part.input) } : part)
    },
    flush: out => {
      end(out)
      over(countsOf(all))
    },
  })
}

const countsOf = (all: readonly TokenRestorer[]): RestoredCounts => {
  const restored: { [token: string]: number } = {}
  for (const [token, count] of all.flatMap(each => [...each.restored])) restored[token] = (restored[token] ?? 0) + count
  return { restored, unrestored: all.reduce((sum, each) => sum + each.unrestored, 0) }
}
