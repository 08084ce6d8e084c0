/** What is known where a condition of a manifest is asked. */
export interface ConditionKeys {
  readonly [key: string]: string | number | boolean | undefined
}

type Value = string | number | boolean | undefined

const TOKEN =
  /\s*(?:(==|!=|&&|\|\||[!()[\],])|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|([A-Za-z_][\w.:/-]*)|(-?\d+(?:\.\d+)?))/y

/** The parts of a condition of a manifest; undefined: it has something that is none. */
export const conditionTokens = (text: string): string[] | undefined => {
  const tokens: string[] = []
  const pattern = new RegExp(TOKEN.source, 'y')
  while (pattern.lastIndex < text.trimEnd().length) {
    const found = pattern.exec(text)
    if (!found) return undefined
    tokens.push(found[0].trim())
  }
  return tokens
}

/** Whether a condition of a manifest holds; one that cannot be read does not. A bare key holds where it has a value. */
export const conditionHolds = (text: string | undefined, keys: ConditionKeys): boolean => {
  if (text === undefined) return true
  const tokens = conditionTokens(text)
  if (!tokens) return false
  let at = 0
  let wrong = false
  const take = (token: string): boolean => {
    if (tokens[at] !== token) return false
    at += 1
    return true
  }
  const must = (token: string): void => {
    if (!take(token)) wrong = true
  }
  const value = (named: boolean): Value => {
    const token = tokens[at++]
    if (token === undefined || !/^[\w"'-]/.test(token)) {
      wrong = true
      return undefined
    }
    if (/^["']/.test(token)) return token.slice(1, -1).replace(/\\(.)/g, '$1')
    if (/^-?\d/.test(token)) return Number(token)
    if (token === 'true' || token === 'false') return token === 'true'
    if (!named) return token
    return Object.hasOwn(keys, token) ? keys[token] : undefined
  }
  const compared = (): boolean => {
    const left = value(true)
    if (take('in')) {
      must('[')
      const choices = [value(false)]
      while (take(',')) choices.push(value(false))
      must(']')
      return choices.includes(left)
    }
    if (take('==')) return left === value(false)
    if (take('!=')) return left !== value(false)
    return Boolean(left)
  }
  const term = (): boolean => {
    if (take('!')) return !term()
    if (!take('(')) return compared()
    const inner = either()
    must(')')
    return inner
  }
  const both = (): boolean => {
    let holds = term()
    while (take('&&')) holds = term() && holds
    return holds
  }
  const either = (): boolean => {
    let holds = both()
    while (take('||')) holds = both() || holds
    return holds
  }
  const holds = either()
  return holds && !wrong && at === tokens.length
}
