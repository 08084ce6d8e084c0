/** A value that must not be shown, and the name shown in its place. */
export interface Hidden {
  readonly name: string
  readonly value: string
}

/** Shorter values are not masked, since they would match everywhere. */
export const LEAST_MASKED = 8
const LEAST_LINE = 12
/** The first and last line of a key file are the same for all keys. */
const FRAME = /^-----(?:BEGIN|END) [A-Z0-9 ]+-----$/

/** The reference that replaces a value. */
export const referenceTo = (name: string): string => `{{secret:${name}}}`

/** All texts in which a value may appear: raw, escaped and encoded. */
export const formsOf = (value: string): Set<string> => {
  const lines = /[\r\n]/.test(value) ? value.split(/[\r\n]+/) : []
  const found = new Set<string>([...written(value), ...encoded(Buffer.from(value))])
  for (const line of lines.map(each => each.trim())) {
    if (line.length < LEAST_LINE || FRAME.test(line)) continue
    for (const form of written(line)) found.add(form)
  }
  return found
}

/** Unchanged, as JSON, as JSON inside JSON, and percent-encoded. */
const written = (text: string): string[] => {
  const json = inJson(text)
  return [text, ...json, ...json.flatMap(inJson), ...inPercent(text)]
}

const inJson = (text: string): string[] => {
  const plain = JSON.stringify(text).slice(1, -1)
  const ascii = plain.replace(/[\u007f-\uffff]/g, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return [plain, ascii, plain.replaceAll('/', '\\/')]
}

const inPercent = (text: string): string[] => {
  const usual = encodeURIComponent(text.toWellFormed())
  const strict = usual.replace(/[!'()*~]/g, char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
  const forms = [usual, encodeURI(text.toWellFormed()), strict, strict.replaceAll('%20', '+')]
  return [...forms, ...forms.map(form => form.replace(/%[0-9A-F]{2}/g, code => code.toLowerCase()))]
}

/** In hexadecimal digits, and in base64 at each of the three possible byte offsets. */
const encoded = (bytes: Buffer): string[] => {
  const hex = bytes.toString('hex')
  const within = [0, 1, 2].map(before => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
    // The first and last characters also contain bits of the surrounding bytes.
    return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6))
  })
  const whole = bytes.toString('base64')
  const standard = [whole, whole.replace(/=+$/, ''), ...within]
  return [hex, hex.toUpperCase(), ...standard, ...standard.map(form => form.replaceAll('+', '-').replaceAll('/', '_'))]
}
