/** Keys with a prefix that identifies their issuer. */
const ISSUED = [
  String.raw`gh[opsur]_\w{20,}`,
  String.raw`github_pat_\w{20,}`,
  String.raw`gl(?:pat|oas|dt|rtr?|cbt|ptt|ft|imt|agent|soat|ffct)-[\w-]{16,}`,
  String.raw`xox[abeprs]-[\w-]{10,}`,
  String.raw`xoxe\.xox[bp]-[\w-]{10,}`,
  String.raw`xapp-\d-[\w-]{20,}`,
  String.raw`hooks\.slack\.com\/(?:services|triggers|workflows)\/\w+\/\w+\/\w{16,}`,
  String.raw`discord(?:app)?\.com\/api\/webhooks\/\d{10,}\/[\w-]{40,}`,
  '(?:AKIA|ASIA)[0-9A-Z]{16}',
  String.raw`AccountKey=[\w+/]{86}==`,
  'npm_[A-Za-z0-9]{36}',
  String.raw`pypi-AgE[\w-]{40,}`,
  'rubygems_[0-9a-f]{48}',
  String.raw`SG\.[\w-]{16,}\.[\w-]{32,}`,
  'hf_[A-Za-z]{34}',
  'do[opr]_v1_[0-9a-f]{64}',
  String.raw`dckr_pat_[\w-]{20,}`,
  'shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}',
  String.raw`whsec_[\w+/=]{24,}`,
  String.raw`ya29\.[\w-]{20,}`,
  String.raw`GOCSPX-[\w-]{20,}`,
  'AGE-SECRET-KEY-1[0-9A-Z]{50,}',
  'glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}',
  String.raw`tskey-[a-z]+-[\w-]{16,}`,
  String.raw`hv[sbr]\.[\w-]{24,}`,
  'lin_(?:api|oauth)_[A-Za-z0-9]{32,}',
  String.raw`\d{8,10}:AA[\w-]{33}`,
]

/** The words that begin and end the file of a private key. */
export const PRIVATE_KEY = '(?:[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)'

/** Keys of the many issuers that say whether a key is secret; words with hyphens have no digit. */
const SECRET = String.raw`(?:sk|rk)[-_](?=[\w-]{0,200}\d)[\w-]{16,}`
/** Keys of Google, some of which are meant to be public. */
const GOOGLE = String.raw`AIza[\w-]{35}`

/** Keys that their issuer marked, as they stand in a text; also those that are meant to be public. */
export const MARKED_KEYS: readonly string[] = [String.raw`(?:sk|rk|pk)[-_][\w-]{16,}`, GOOGLE, ...ISSUED]

/** As `MARKED_KEYS`, without those that say that they are public. */
export const SECRET_KEYS: readonly string[] = [SECRET, GOOGLE, ...ISSUED]

/** What is a credential by itself, wherever it stands; keys that are meant to be public are none. */
const SELF_IDENTIFYING = new RegExp(
  String.raw`-----BEGIN ${PRIVATE_KEY}-----|PuTTY-User-Key-File-\d:|\b(?:`
    + [...ISSUED, SECRET].join('|')
    + String.raw`|sb[a-z]_[\w-]{22}\.[\w-]{43})`,
)

/** The length of a secret access key, which has no mark. */
const LENGTH = 40
/** The characters before a match that decide whether it is one, and those after it. */
const CONTEXT = 64
const AFTER = 8

const BASE64 = new Uint8Array(128)
for (const char of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/') BASE64[char.charCodeAt(0)] = 1

/** What a line of a longer text in base64 follows, and what a key never follows or precedes. */
const WRAPPED = /[A-Za-z0-9+/]{60}(?:\r?\n|\\n)$/
const JOINED_BEFORE = /[_.-]$/
const JOINED_AFTER = /^(?:[=_-]|\.\w)/

/** Where 40 characters of base64 stand alone that look random, as secret access keys do. */
function* unmarkedIn(text: string): Generator<number> {
  const isBase64 = (at: number): boolean => BASE64[text.charCodeAt(at)] === 1
  // Every run of so many characters has one at each step.
  for (let at = LENGTH - 1; at < text.length; at += LENGTH) {
    if (!isBase64(at)) continue
    let start = at
    while (start > 0 && isBase64(start - 1)) start -= 1
    while (at + 1 < text.length && isBase64(at + 1)) at += 1
    // The letter of an escape is none of the key.
    if (at + 1 - start === LENGTH + 1 && text[start - 1] === '\\') start += 1
    if (at + 1 - start !== LENGTH) continue
    const before = text.slice(Math.max(0, start - CONTEXT), start)
    if (JOINED_BEFORE.test(before) || WRAPPED.test(before) || JOINED_AFTER.test(text.slice(at + 1, at + 3))) continue
    if (isRandom(text.slice(start, start + LENGTH))) yield start
  }
}

/** Less is not random: names and paths of 40 characters have up to 4.1, one key of 100,000 has less than that. */
const LEAST_ENTROPY = 4.1
const MOST_IN_WORDS = 20

/** Whether 40 characters look random, as those of names, paths and hashes in hexadecimal digits do not. */
const isRandom = (text: string): boolean => {
  if (![/[a-z]/, /[A-Z]/, /[\d+/]/].every(kind => kind.test(text))) return false
  const inWords = text.match(/[A-Z]?[a-z]{3,}/g)?.join('').length ?? 0
  return inWords <= MOST_IN_WORDS && entropyOf(text) >= LEAST_ENTROPY
}

/** The bits that each character of a text tells. */
const entropyOf = (text: string): number => {
  const counts = [...Map.groupBy(text, char => char).values()].map(({ length }) => length / text.length)
  return counts.reduce((sum, share) => sum - share * Math.log2(share), 0)
}

/** Passwords in addresses: before the host, or as a parameter. A digest after an image's name is none. */
const IN_ADDRESSES = [
  /(?<=[a-z\d]):\/\/[^\s/?#"'<>`@:]{0,64}:(?<password>[^\s/?#"'<>`]{1,128})@(?!sha\d+:)(?=[\w[.%{$-])/gi,
  /(?<=[a-z\d]):\/\/[^\s"'<>`]{0,120}?[?&;](?:password|passwd|pwd)=(?<password>[^\s"'<>`&;]{1,64})/gi,
]
/** Variables and fields of templates that stand for a password. */
const NAMED = [
  ...[String.raw`\$\{[^}]*\}`, String.raw`\$[A-Z_][A-Z0-9_]*`, String.raw`\$\([^)]*\)`, String.raw`\{+[^{}]*\}+`],
  ...['%s', String.raw`%\(\w+\)s`, '%[A-Z_]+%', String.raw`\[\w+\]`],
]
const STANDS_FOR_ONE = new RegExp(String.raw`^(?:(?:${NAMED.join('|')})+|\*+|x+|X+|•+|\.{3}|…)$`)

/** A text with something else in place of keys that have no mark. */
export const withoutUnmarked = (text: string, instead: string): string => {
  let [out, from] = ['', 0]
  for (const start of unmarkedIn(text)) {
    out += text.slice(from, start) + instead
    from = start + LENGTH
  }
  return from === 0 ? text : out + text.slice(from)
}

/** Where passwords in addresses and keys without a mark begin and end. */
function* judgedIn(text: string): Generator<readonly [start: number, end: number]> {
  for (const start of unmarkedIn(text)) yield [start, start + LENGTH]
  for (const form of IN_ADDRESSES)
    for (const { 0: address, index, groups } of text.matchAll(form))
      if (!STANDS_FOR_ONE.test(groups?.['password'] ?? '')) yield [index, index + address.length]
}

/** More characters than a key has that a cut can go through. */
const OVERLAP = 512

/** Looks for keys and passwords in a text that comes in pieces. */
export class KeySearch {
  #before = ''
  #isCut = false

  /** Whether something is found with this piece. */
  push(piece: string): boolean {
    return this.#found(this.#before + piece, false)
  }

  /** Whether the end of the text is one. */
  end(): boolean {
    return this.#found(this.#before, true)
  }

  #found(text: string, isWhole: boolean): boolean {
    // What was cut off decides about a match at the beginning, and has done so.
    const from = this.#isCut ? CONTEXT : 0
    // What comes next decides about a match at the end, and it is looked at again with that.
    const to = text.length - (isWhole ? 0 : AFTER)
    const found = SELF_IDENTIFYING.test(text) || [...judgedIn(text)].some(([start, end]) => start >= from && end <= to)
    this.#isCut ||= text.length > OVERLAP
    this.#before = text.slice(-OVERLAP)
    return found
  }
}
