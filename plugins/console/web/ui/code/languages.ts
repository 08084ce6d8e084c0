import { Language, defineLanguageFacet } from '@codemirror/language'
import type { Extension } from '@codemirror/state'
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

/** The grammar for a file name; undefined if unknown. */
export const languageOf = async (path: string): Promise<Extension> => {
  const [, load] = GRAMMARS.find(([endings]) => endings.test(path)) ?? []
  return load ? new Language(defineLanguageFacet(), await load(), [], path).extension : []
}
