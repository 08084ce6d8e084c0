import { extname } from 'node:path'

/** A language server, and the files that it knows. */
export interface Language {
  readonly program: string
  readonly args: readonly string[]
  /** The identifier of the language of each extension (LSP, TextDocumentItem). */
  readonly ids: { readonly [extension: string]: string }
}

const LANGUAGES: readonly Language[] = [
  {
    program: 'typescript-language-server',
    args: ['--stdio'],
    ids: {
      ...{ '.ts': 'typescript', '.mts': 'typescript', '.cts': 'typescript', '.tsx': 'typescriptreact' },
      ...{ '.js': 'javascript', '.mjs': 'javascript', '.cjs': 'javascript', '.jsx': 'javascriptreact' },
    },
  },
  { program: 'pyright-langserver', args: ['--stdio'], ids: { '.py': 'python', '.pyi': 'python' } },
  { program: 'gopls', args: [], ids: { '.go': 'go' } },
  { program: 'rust-analyzer', args: [], ids: { '.rs': 'rust' } },
  {
    program: 'clangd',
    args: ['--background-index=false', '--log=error'],
    ids: { '.c': 'c', '.h': 'c', '.cc': 'cpp', '.cpp': 'cpp', '.cxx': 'cpp', '.hpp': 'cpp', '.hh': 'cpp' },
  },
]

/** The language server of a file, and how it calls its language; undefined: none is known. */
export const serverLanguage = (path: string): { readonly language: Language; readonly id: string } | undefined => {
  const extension = extname(path).toLowerCase()
  const language = LANGUAGES.find(({ ids }) => Object.hasOwn(ids, extension))
  return language && { language, id: language.ids[extension]! }
}
