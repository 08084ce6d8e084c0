import type { Frame, Harness, InitFrame, UsageFrame } from '../turn/frames/frames.js'

/** What a run spent on one provider and model. */
export interface Spent {
  readonly provider: string
  readonly harness: Harness
  readonly model: string
  readonly account?: string
  /** The subagent that spent it; left out: the turn's own agent. */
  readonly subagent?: string
  /** Requests as the provider counts them. */
  turns: number
  inputTokens: number
  outputTokens: number
  cacheReadTokens: number
  cacheCreationTokens: number
  durationMs: number
  /** As the provider states it; left out: it states nothing. */
  costUsd?: number
}

/** What the frames of a run say was spent: a part for each provider and model it ran on, and for each subagent. */
export class Spending {
  readonly #parts: Spent[] = []
  readonly #subagents = new Map<string, Spent & { readonly subagent: string }>()

  /** The parts of the turn's own agent, in order. */
  get parts(): readonly Spent[] {
    return this.#parts
  }

  /** The parts of subagents, of which running ones grow. */
  get ofSubagents(): readonly (Spent & { readonly subagent: string })[] {
    return [...this.#subagents.values()]
  }

  add(frame: Frame): void {
    if (frame.kind === 'init') this.#begin(frame)
    if (frame.kind === 'usage') this.#use(frame)
  }

  #begin({ provider = '', harness = 'native', model, account }: InitFrame): void {
    const last = this.#parts.at(-1)
    if (last?.provider === provider && last.harness === harness && last.model === model && last.account === account)
      return
    this.#parts.push({ provider, harness, model, ...(account !== undefined && { account }), ...nothing() })
  }

  #part({ subagent, provider = '', harness = 'native', model = '', account }: UsageFrame): Spent | undefined {
    if (subagent === undefined) return this.#parts.at(-1)
    const known = this.#subagents.get(subagent)
    if (known) return known
    const part = { subagent, provider, harness, model, ...(account !== undefined && { account }), ...nothing() }
    this.#subagents.set(subagent, part)
    return part
  }

  #use(usage: UsageFrame): void {
    const part = this.#part(usage)
    if (!part) return
    part.turns += usage.numTurns ?? 1
    part.inputTokens += usage.inputTokens ?? 0
    part.outputTokens += usage.outputTokens ?? 0
    part.cacheReadTokens += usage.cacheReadTokens ?? 0
    part.cacheCreationTokens += usage.cacheCreationTokens ?? 0
    part.durationMs += usage.durationMs ?? 0
    if (usage.costUsd !== undefined) part.costUsd = (part.costUsd ?? 0) + usage.costUsd
  }
}

const nothing = () => ({
  turns: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheCreationTokens: 0,
  durationMs: 0,
})
