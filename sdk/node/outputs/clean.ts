import { LINE_CLEANERS } from './catalogue.js'
import type { LineCleaner } from './cleaner.js'
import { readsFiles, type CommandProgram } from './commands.js'
import { MOST_LOOKED_AT, tellsOfError } from './error-lines.js'
import { drawnOver, isProgress, withoutEscapes } from './terminal-lines.js'

/** An output as it was shortened, and how many characters each cleaner left out. */
export interface CleanedOutput {
  readonly text: string
  readonly saved: ReadonlyMap<string, number>
}

/** Start other programs, whose output may be of any kind. */
const RUNNERS = new Set([
  ...['npm', 'yarn', 'pnpm', 'bun', 'deno', 'node', 'make', 'gmake', 'just', 'task', 'sh', 'bash', 'zsh', 'dash'],
  ...['tox', 'nox', 'python', 'python3', 'docker', 'podman', 'rake', 'gh', 'act'],
])
const CLAIMED = new Set(LINE_CLEANERS.flatMap(({ commands }) => commands))

/** The cleaners for the output of these programs. */
const cleanersFor = (programs: readonly CommandProgram[], ids: ReadonlySet<string>): readonly LineCleaner[] => {
  const names = new Set(programs.map(({ name }) => name))
  const any = [...names].some(name => RUNNERS.has(name) || !CLAIMED.has(name))
  return LINE_CLEANERS.filter(
    ({ id, commands, narrow }) => ids.has(id) && ((any && !narrow) || commands.some(name => names.has(name))),
  )
}

/**
 * Shortens the output of a command for a model: leaves out what only shows that something goes on or went well.
 *
 * A line that tells of an error is never left out; equal ones in a row are shown once and counted.
 *
 * @param programs What the command runs; undefined: a program of the agent's own, in which only what a terminal would
 *   not show is left out.
 */
export const cleanOutput = (
  output: string,
  programs: readonly CommandProgram[] | undefined,
  ids: ReadonlySet<string>,
): CleanedOutput => {
  const saved = new Map<string, number>()
  if (programs && readsFiles(programs)) return { text: output, saved }
  const count = (id: string, characters: number): void => {
    if (characters > 0) saved.set(id, (saved.get(id) ?? 0) + characters)
  }
  const plain = ids.has('escapes') ? withoutEscapes(output) : output
  count('escapes', output.length - plain.length)
  const cleaners = (programs ? cleanersFor(programs, ids) : []).map(({ id, begin }) => ({ id, drops: begin() }))
  const lines = new LineOutput(ids.has('repeats'), count)
  const draws = ids.has('progress')
  let shown: string | undefined
  const showProgress = () => {
    if (shown !== undefined) lines.add(shown)
    shown = undefined
  }
  for (const whole of plain.split('\n')) {
    const line = whole.endsWith('\r') ? whole.slice(0, -1) : whole
    const parts = draws ? drawnOver(line, tellsOfError) : [line]
    if (draws) count('progress', line.length - parts.reduce((sum, part) => sum + part.length, 0) - (parts.length - 1))
    for (const part of parts) {
      const long = part.length > MOST_LOOKED_AT
      if (draws && programs && !long && isProgress(part) && !tellsOfError(part)) {
        if (shown !== undefined) count('progress', shown.length + 1)
        shown = part
        continue
      }
      // Every cleaner sees every line, because some remember what came before.
      let by: string | undefined
      if (!long) for (const { id, drops } of cleaners) if (drops(part)) by ??= id
      if (by !== undefined && !tellsOfError(part)) {
        count(by, part.length + 1)
        continue
      }
      showProgress()
      lines.add(part)
    }
  }
  showProgress()
  return { text: lines.end(), saved }
}

/** The lines of an output; equal ones in a row are counted in place of repeated. */
class LineOutput {
  readonly #lines: string[] = []
  readonly #counts: boolean
  readonly #saved: (id: string, characters: number) => void
  #last: string | undefined
  #more = 0

  constructor(counts: boolean, saved: (id: string, characters: number) => void) {
    this.#counts = counts
    this.#saved = saved
  }

  /** The whole text. */
  end(): string {
    this.#say()
    return this.#lines.join('\n')
  }

  add(line: string): void {
    if (this.#counts && line === this.#last) {
      this.#more++
      return
    }
    this.#say()
    this.#lines.push(line)
    this.#last = line
  }

  #say(): void {
    const [line = '', more] = [this.#last, this.#more]
    this.#more = 0
    if (more === 0) return
    const told = line.trim() === '' ? undefined : `[the line above ${more} more ${more === 1 ? 'time' : 'times'}]`
    // A short line is shorter than what would count it.
    if (told !== undefined && told.length >= more * (line.length + 1))
      return void this.#lines.push(...Array(more).fill(line))
    if (told !== undefined) this.#lines.push(told)
    this.#saved('repeats', more * (line.length + 1) - (told === undefined ? 0 : told.length + 1))
  }
}
