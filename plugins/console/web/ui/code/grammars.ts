import type { Parser } from '@lezer/common'

/** The grammars by file extension; each is a separate chunk. */
const GRAMMARS: readonly (readonly [endings: RegExp, load: () => Promise<Parser>])[] = [
  [/\.[cm]?tsx?$/, async () => (await import('@lezer/javascript')).parser.configure({ dialect: 'ts jsx' })],
  [/\.[cm]?jsx?$/, async () => (await import('@lezer/javascript')).parser.configure({ dialect: 'jsx' })],
  [/\.py$/, async () => (await import('@lezer/python')).parser],
  [/\.css$/, async () => (await import('@lezer/css')).parser],
  [/\.html?$/, async () => (await import('@lezer/html')).parser],
  [/\.json$/, async () => (await import('@lezer/json')).parser],
  [/\.md$/, async () => (await import('@lezer/markdown')).parser],
  [/\.rs$/, async () => (await import('@lezer/rust')).parser],
  [/\.go$/, async () => (await import('@lezer/go')).parser],
]

/** The parser for a file name; undefined if its language is unknown. */
export const parserOf = (path: string): Promise<Parser> | undefined =>
  GRAMMARS.find(([endings]) => endings.test(path))?.[1]()
