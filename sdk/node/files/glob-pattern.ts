const SPECIAL = /[\\^$.|+()[\]{}*?]/
const MOST_DEPTH = 5

/**
 * The regular expression of a glob: `*` within a part of a path, `**` across parts, `?`, `[…]`, `{a,b}`. Undefined: a
 * bracket is not closed.
 */
export const globPattern = (glob: string): string | undefined => {
  let pattern = ''
  const open: '}'[] = []
  for (let at = 0; at < glob.length; at++) {
    const char = glob[at]!
    if (char === '\\') {
      const next = glob[++at]
      if (next === undefined) return undefined
      pattern += escaped(next)
    } else if (char === '*' && glob[at + 1] === '*') {
      at++
      if (glob[at + 1] === '/') {
        at++
        pattern += '(?:.*/)?'
      } else pattern += '.*'
    } else if (char === '*') pattern += '[^/]*'
    else if (char === '?') pattern += '[^/]'
    else if (char === '[') {
      const end = glob.indexOf(']', at + 2)
      if (end < 0) return undefined
      const inner = glob
        .slice(at + 1, end)
        .replace(/\\/g, '\\\\')
        .replace(/\[/g, '\\[')
      pattern += `[${inner.startsWith('!') ? `^${inner.slice(1)}` : inner}]`
      at = end
    } else if (char === '{') {
      if (open.push('}') > MOST_DEPTH) return undefined
      pattern += '(?:'
    } else if (char === '}') {
      if (!open.pop()) return undefined
      pattern += ')'
    } else pattern += char === ',' && open.length > 0 ? '|' : escaped(char)
  }
  return open.length > 0 ? undefined : `^${pattern}$`
}

const escaped = (char: string): string => (SPECIAL.test(char) ? `\\${char}` : char)
