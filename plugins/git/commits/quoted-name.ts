const ESCAPES: { readonly [letter: string]: number } = {
  a: 7,
  b: 8,
  t: 9,
  n: 10,
  v: 11,
  f: 12,
  r: 13,
  '"': 34,
  '\\': 92,
}

/** Decodes the quoted form that git uses for names with control characters. */
export const unquoted = (name: string): string => {
  if (!name.startsWith('"') || !name.endsWith('"')) return name
  const bytes: number[] = []
  for (const [part] of name.slice(1, -1).matchAll(/\\[0-7]{3}|\\.|[^\\]+/gs)) {
    if (!part.startsWith('\\')) bytes.push(...Buffer.from(part))
    else if (part.length === 4) bytes.push(Number.parseInt(part.slice(1), 8))
    else bytes.push(ESCAPES[part[1]!] ?? part.charCodeAt(1))
  }
  return Buffer.from(bytes).toString()
}
