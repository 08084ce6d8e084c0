import type { SubagentFrame, SubagentUpdateFrame } from '../../plugins/agent/contract.js'
import { oneLine, plain, short, type Styles } from './text.js'

interface Shown {
  readonly depth: number
  readonly name: string
  readonly background: boolean
}

/** The helpers of a run, as far as telling who did what needs them. */
export class HelperLines {
  readonly #helpers = new Map<string, Shown>()
  readonly #styles: Styles
  #counted: string | undefined

  constructor(styles: Styles) {
    this.#styles = styles
  }

  /** A helper begins; `parent` is the helper that started it. */
  begin({ id, description, background }: SubagentFrame, parent: string | undefined): void {
    const name = short(plain(description ?? id), 60)
    this.#helpers.set(id, { name, depth: this.#depth(parent) + 1, background: background ?? false })
  }

  /** What a helper's move is worth telling: what the call that started it will not tell. */
  move({ id, status, tokens, summary, error }: SubagentUpdateFrame): string[] {
    this.#counted = tokens === undefined ? undefined : id
    const { dim, green, red, yellow } = this.#styles
    const { name, background, depth } = this.#helpers.get(id) ?? { name: oneLine(id), background: true, depth: 1 }
    const indent = '  '.repeat(depth - 1)
    if (status === 'blocked') return [dim(`${indent}helper ${name} asks:`)]
    if (!background) return []
    if (status === 'completed')
      return [`${indent}${green('✓')} helper ${name}${summary ? dim(`: ${short(plain(summary), 200)}`) : ''}`]
    if (status === 'failed')
      return [`${indent}${red('✗')} helper ${name}${error ? dim(`: ${short(plain(error), 200)}`) : ''}`]
    return status === 'killed' ? [yellow(`${indent}helper ${name} was stopped`)] : []
  }

  /** What stands before a line of an agent: deeper for every helper between it and the turn. */
  indent(parent: string | undefined): string {
    return '  '.repeat(this.#depth(parent))
  }

  /** What stands before a count of what was used: a helper's comes right behind the move that counts its tokens. */
  usageIndent(): string {
    const helper = this.#counted
    this.#counted = undefined
    return this.indent(helper)
  }

  /** Who speaks, where more than one may. */
  speaker(parent: string | undefined): string {
    const helper = parent === undefined ? undefined : this.#helpers.get(parent)
    return helper?.background ? this.#styles.dim(`${helper.name}: `) : ''
  }

  #depth(parent: string | undefined): number {
    return parent === undefined ? 0 : (this.#helpers.get(parent)?.depth ?? 1)
  }
}
