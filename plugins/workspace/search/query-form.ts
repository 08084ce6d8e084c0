/** The intent of a query, judged by its form. */
export type QueryForm =
  | { readonly kind: 'path'; readonly path: string }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'regex' }
  | { readonly kind: 'words' }

const FILE = /^[\w@.~-]+\.[A-Za-z][A-Za-z0-9]{0,7}$/
const NAME = /^#?[\p{L}_$][\p{L}\p{N}_$]*(?:\(\))?$/u
const QUALIFIED = /^(?:[\p{L}_$][\p{L}\p{N}_$]*(?:\.|::|#|->))+([\p{L}_$][\p{L}\p{N}_$]*)(?:\(\))?$/u
const META = /[\\^$|*+()[\]{}]|\.\*|\w\?\w/

const isRegex = (text: string): boolean => {
  try {
    new RegExp(text, 'u')
    return true
  } catch {
    return false
  }
}

/** Reads the form of a query. */
export const formOf = (query: string): QueryForm => {
  const text = query.trim()
  if (!/\s/.test(text) && (/^[\w@.~-]+(?:\/[\w@.~[\]()-]+)+\/?$/.test(text) || (FILE.test(text) && isFileName(text))))
    return { kind: 'path', path: text.replace(/\/$/, '') }
  if (NAME.test(text)) return { kind: 'name', name: text.replace(/^#|\(\)$/g, '') }
  const qualified = QUALIFIED.exec(text)?.[1]
  if (qualified !== undefined) return { kind: 'name', name: qualified }
  if (META.test(text) && isRegex(text)) return { kind: 'regex' }
  return { kind: 'words' }
}

const PROGRAMS = '[cm]?[jt]sx?|py|go|rs|java|kt|c|h|cc|cpp|hpp|cs|rb|php|sh|css|html?|sql|vue|svelte|swift'
const TEXTS = 'json|md|ya?ml|toml|xml|txt|lock|pdf|docx|xlsx'
const EXTENSIONS = new RegExp(`\\.(?:${PROGRAMS}|${TEXTS})$`, 'i')

/** `a.ts` is a file, `map.get` is not. */
const isFileName = (text: string): boolean => EXTENSIONS.test(text)
