import { highlightCode } from '@lezer/highlight'
import { codeColours } from './code-colours.js'
import { parserOf } from './grammars.js'

/** The endings of languages whose name is another one. */
const ENDINGS: { readonly [language: string]: string } = {
  typescript: 'ts',
  javascript: 'js',
  python: 'py',
  rust: 'rs',
  golang: 'go',
  markdown: 'md',
}

/** A part of a code, and its colour. */
export interface CodePiece {
  readonly text: string
  readonly colour: string
}

/** A code in coloured pieces; undefined if its language is unknown. */
export const colouredPieces = async (code: string, language: string): Promise<CodePiece[] | undefined> => {
  const name = language.toLowerCase()
  const parser = await parserOf(`.${ENDINGS[name] ?? name}`)
  if (!parser) return undefined
  const pieces: CodePiece[] = []
  highlightCode(
    code,
    parser.parse(code),
    codeColours,
    (text, colour) => pieces.push({ text, colour }),
    () => pieces.push({ text: '\n', colour: '' }),
  )
  return pieces
}
