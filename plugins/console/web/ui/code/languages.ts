import { Language, defineLanguageFacet } from '@codemirror/language'
import type { Extension } from '@codemirror/state'
import { parserOf } from './grammars.js'

/** The grammar for a file name, as the editor takes it. */
export const languageOf = async (path: string): Promise<Extension> => {
  const parser = await parserOf(path)
  return parser ? new Language(defineLanguageFacet(), parser, [], path).extension : []
}
