import type { Frame, SubagentFrame, SubagentUpdateFrame } from '../../../plugins/agent/contract.js'
import { oneLine, plain, short, type Styles } from '../terminal/text.js'

type UsageFrame = Frame & { readonly kind: 'usage' }

interface Shown {
  readonly depth: number
  readonly name: string
  readonly background: boolean
}

/** Renders the subagents of a run, and the indentation and names that show which agent did what. */
export class SubagentLines {
  readonly #subagents = new Map<string, Shown>()
  readonly #styles: Styles
  readonly #used = new Map<string | undefined, UsageFrame>()

  constructor(styles: Styles) {
    this.#styles = styles
  }

  /** Adds a subagent; `parent` is the subagent that started it. */
  begin({ id, description, background }: SubagentFrame, parent: string | undefined): void {
    const name = short(plain(description ?? id), 60)
    this.#subagents.set(id, { name, depth: this.#depth(parent) + 1, background: background ?? false })
  }

  /** The lines for an update of a subagent, unless the call that started it shows the same. */
  move({ id, status, summary, error }: SubagentUpdateFrame): string[] {
    const { dim, green, red, yellow } = this.#styles
    const { name, background, depth } = this.#subagents.get(id) ?? { name: oneLine(id), background: true, depth: 1 }
    const indent = '  '.repeat(depth - 1)
    if (status === 'blocked') return [dim(`${indent}subagent ${name} asks:`)]
    if (!background) return []
    if (status === 'completed')
      return [`${indent}${green('✓')} subagent ${name}${summary ? dim(`: ${short(plain(summary), 200)}`) : ''}`]
    if (status === 'failed')
      return [`${indent}${red('✗')} subagent ${name}${error ? dim(`: ${short(plain(error), 200)}`) : ''}`]
    return status === 'killed' ? [yellow(`${indent}subagent ${name} was stopped`)] : []
  }

  /** The indentation of an agent's lines: deeper for every subagent between it and the turn. */
  indent(parent: string | undefined): string {
    return '  '.repeat(this.#depth(parent))
  }

  /** Adds to what an agent used, which is shown once; `subagent` is left out for that of the turn. */
  use(subagent: string | undefined, frame: UsageFrame): void {
    const before = this.#used.get(subagent)
    const keys = ['costUsd', 'inputTokens', 'outputTokens', 'durationMs'] as const
    const sums = keys.flatMap(key =>
      before?.[key] === undefined && frame[key] === undefined
        ? []
        : [[key, (before?.[key] ?? 0) + (frame[key] ?? 0)] as const],
    )
    this.#used.set(subagent, { ...frame, ...Object.fromEntries(sums) })
  }

  /** What a subagent used in all, at its end. */
  usedAtEnd({ id, status }: SubagentUpdateFrame): UsageFrame | undefined {
    if (status === undefined || status === 'running' || status === 'blocked') return undefined
    return this.#taken(id)
  }

  /** What the turn's own agent used since the last call. */
  usedByTurn(): UsageFrame | undefined {
    return this.#taken(undefined)
  }

  #taken(id: string | undefined): UsageFrame | undefined {
    const used = this.#used.get(id)
    this.#used.delete(id)
    return used
  }

  /** The name before a background subagent's text. */
  speaker(parent: string | undefined): string {
    const subagent = parent === undefined ? undefined : this.#subagents.get(parent)
    return subagent?.background ? this.#styles.dim(`${subagent.name}: `) : ''
  }

  #depth(parent: string | undefined): number {
    return parent === undefined ? 0 : (this.#subagents.get(parent)?.depth ?? 1)
  }
}
