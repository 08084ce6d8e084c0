import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The access to one call by the written contract. */
export interface AccessLine {
  readonly call: string
  readonly id: string
  /** The least role of a person; if it depends on the input, the lowest. */
  readonly floor: 'open' | 'viewer' | 'collaborator' | 'maintainer' | 'owner'
  readonly tokens: readonly string[]
}

/** The lines that were copied from the written contract. */
export const accessLinesFile = fileURLToPath(new URL('../../../../test/fixtures/access-lines.json', import.meta.url))

const HEADING = /^### ((?:GET|POST|PUT|PATCH|DELETE|ANY) \/\S*) — `([\w.]+)`\n+floor: (\w+)[^\n]*? · token: ([^·\n]+)/gm

/** Copies the lines out of a folder of the written contract. */
const copyLines = (folder: string): AccessLine[] =>
  readdirSync(folder)
    .filter(name => name.endsWith('.md'))
    .flatMap(name =>
      [...readFileSync(join(folder, name), 'utf8').matchAll(HEADING)].map(
        ([, call = '', id = '', floor = '', token = '']): AccessLine => ({
          call,
          id,
          floor: floor as AccessLine['floor'],
          tokens: token
            .replace(/\(.*?\)/g, '')
            .trim()
            .split(/[\s,]+/)
            .filter(scope => scope !== 'none'),
        }),
      ),
    )
    .sort((a, b) => (a.call < b.call ? -1 : 1))

const [, program, folder] = process.argv
if (program === fileURLToPath(import.meta.url) && folder !== undefined) {
  const lines = copyLines(folder).map(line => `  ${JSON.stringify(line)}`)
  writeFileSync(accessLinesFile, `[\n${lines.join(',\n')}\n]\n`)
}
