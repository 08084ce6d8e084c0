import type { Lang } from '@ast-grep/napi'

/** Texts, and the shape that is looked for in them. */
export interface ShapeInput {
  readonly pattern: string
  readonly files: readonly { readonly path: string; readonly language: string; readonly text: string }[]
}
/** The matches of the shape, and the languages in which it is valid code. */
export interface ShapeAnswer {
  readonly parsed: readonly string[]
  readonly files: readonly {
    readonly path: string
    readonly matches: readonly { readonly line: number; readonly start: number; readonly end: number }[]
  }[]
}

const MOST_MATCHES = 2_000

const main = async (): Promise<void> => {
  const { parse } = await import('@ast-grep/napi')
  const pieces: Buffer[] = []
  for await (const piece of process.stdin) pieces.push(piece as Buffer)
  const { pattern, files } = JSON.parse(Buffer.concat(pieces).toString()) as ShapeInput
  const isCode = (language: string): boolean => {
    try {
      const root = parse(language as Lang, pattern).root()
      // The search itself refuses a pattern that is not a single node.
      root.findAll(pattern)
      return root.find({ rule: { kind: 'ERROR' } }) === null
    } catch {
      return false
    }
  }
  const languages = [...new Set(files.map(({ language }) => language))]
  const parsed = languages.filter(isCode)
  const found = files
    .filter(({ language }) => parsed.includes(language))
    .map(({ path, language, text }) => ({
      path,
      matches: parse(language as Lang, text)
        .root()
        .findAll(pattern)
        .slice(0, MOST_MATCHES)
        .map(node => {
          const { start, end } = node.range()
          const line = text.split('\n', start.line + 1).at(-1) ?? ''
          return { line: start.line + 1, start: start.column, end: end.line === start.line ? end.column : line.length }
        }),
    }))
    .filter(({ matches }) => matches.length > 0)
  process.stdout.write(JSON.stringify({ parsed, files: found } satisfies ShapeAnswer))
}

await main()
