import { hash } from 'node:crypto'
import { textBelow } from '../../../sdk/node/files/real-folders.js'
import { isMeaningfulVariable } from '../../../sdk/node/programs/meaningful-variables.js'
import { splitWords } from '../../../sdk/node/programs/split-words.js'

const MOST = 64 * 1024
/** Names the lines that the image of the sandbox was built with. */
const BUILT_IN = 'SANDBOX_IMAGE_LINES'

/** The lines of an extension for the image of the sandbox. */
export interface ImageLines {
  /** What its `ENV` lines set: turns get these without a new image. */
  readonly variables: { readonly [name: string]: string }
  /** Whether it has `RUN` lines, which only an image can have run. */
  readonly runs: boolean
  /** Names these lines among those of an image. */
  readonly mark: string
  /** What of them is not honoured, as sentences. */
  readonly problems: readonly string[]
}

/** Joins lines that end with a backslash, without the comments between them. */
const wholeLines = (text: string): string[] =>
  text
    .split(/\r?\n/)
    .filter(line => !line.trimStart().startsWith('#'))
    .join('\n')
    .replace(/\\[ \t]*\n/g, ' ')
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')

/** The variables of an `ENV` line: `NAME=value …`, or `NAME value`. */
const pairsOf = (rest: string): [name: string, value: string][] | undefined => {
  const old = /^([A-Za-z_]\w*)\s+(.*)$/.exec(rest)
  if (old) return [[old[1]!, old[2]!]]
  const words = splitWords(rest)
  const pairs = words?.map(word => /^([A-Za-z_]\w*)=(.*)$/s.exec(word))
  return pairs?.every(pair => pair !== null) ? pairs.map(pair => [pair![1]!, pair![2]!]) : undefined
}

/** Reads lines for the image. */
export const imageLines = (text: string, from: string): ImageLines => {
  const variables: { [name: string]: string } = {}
  const problems: string[] = []
  let runs = false
  for (const line of wholeLines(text)) {
    const [, instruction = '', rest = ''] = /^(\S+)\s+(.*)$/s.exec(line) ?? []
    if (instruction.toUpperCase() === 'RUN') {
      runs = true
      continue
    }
    const pairs = pairsOf(rest)
    if (!pairs) problems.push(`${from}: ${JSON.stringify(line.slice(0, 60))} is not set: expected ENV NAME=value`)
    for (const [name, value] of pairs ?? []) {
      if (isMeaningfulVariable(name)) problems.push(`${from}: ${name} is not set: programs or the sandbox use that`)
      else if (/\$/.test(value)) problems.push(`${from}: ${name} is not set: its value refers to another variable`)
      else variables[name] = value
    }
  }
  const mark = hash('sha256', text, 'hex').slice(0, 12)
  const built = (process.env[BUILT_IN] ?? '').split(/[\s,]+/)
  if (runs && !built.includes(mark))
    problems.push(
      `${from}: its RUN lines are not in the image of the sandbox: build the image with them, `
        + `and name ${mark} in ${BUILT_IN}`,
    )
  return { variables, runs, mark, problems }
}

/** The lines of a file of an extension; undefined: it cannot be read. */
export const readImageLines = async (dir: string, path: string): Promise<ImageLines | undefined> => {
  const text = await textBelow(dir, path, MOST)
  return text === undefined ? undefined : imageLines(text, path)
}
