import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { node } from './node.mjs'

const TYPES = 'dist/types'
const STATE = 'dist/.types.tsbuildinfo'
/** Limits are checked by the daemon: for the compiler of an author they are nothing. */
const TAGS = 'typia.d.ts'

/** What else the types of contracts take from typia, and from the specification of schemas that it follows. */
const VALIDATION = `export type IValidation<T> = { success: true; data: T } | { success: false; data: unknown }
export interface StandardSchemaV1<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly types?: { input: Input; output: Output }
  }
}
`

/** Writes the types of the package's programs, so that they need no other package. */
export const buildTypes = async () => {
  await node('node_modules/typescript/bin/tsc', '-p', 'sdk', '--incremental', '--tsBuildInfoFile', STATE)
  mkdirSync(TYPES, { recursive: true })
  const names = new Set()
  const sources = JSON.parse(readFileSync(STATE, 'utf8')).fileNames.filter(name =>
    /^\.\.\/(?!node_modules\/)/.test(name),
  )
  const wanted = new Set(sources.map(name => join(TYPES, name.slice(3).replace(/\.ts$/, '.d.ts'))))
  for (const file of globSync(`${TYPES}/**/*.d.ts`)) {
    if (file === join(TYPES, TAGS)) continue
    if (!wanted.has(file)) {
      rmSync(file)
      continue
    }
    const text = readFileSync(file, 'utf8')
    const up = posix.relative(posix.dirname(file), TYPES)
    const types = `import('${up}/typia.js')`
    const own = text
      .replace(/^import typia from 'typia';$/m, "import type { tags } from 'typia';")
      .replace(/^import typia, /m, 'import ')
      .replace(/\btypia\.tags\./g, 'tags.')
      .replace(/\btypia\.IValidation\b/g, `${types}.IValidation`)
      .replace(/\bimport\("@standard-schema\/spec"[^)]*\)/g, types)
      .replace(/ from 'typia'/g, ` from '${up}/typia.js'`)
    for (const [, name] of own.matchAll(/\btags\.(\w+)/g)) names.add(name)
    if (own !== text) writeFileSync(file, own)
  }
  const tags = [...names].sort().map(name => `  type ${name}<_ = unknown> = unknown`)
  writeFileSync(join(TYPES, TAGS), `export declare namespace tags {\n${tags.join('\n')}\n}\n${VALIDATION}`)
}
