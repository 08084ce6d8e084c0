import type { Place } from '../../../sdk/index.js'
import type { Masker } from '../../../sdk/node/access/masker.js'
import { REDACTED, redacted } from '../../../sdk/node/access/redact.js'
import { PhraseMatcher } from '../../../sdk/node/access/phrase-matcher.js'
import { unseenBut } from '../../../sdk/unseen.js'
import type { Redaction } from '../contract.js'

const REFERENCE = /\{\{secret:[^{}]{1,200}\}\}/g
const ADDRESS = '[address]'
/** Also of selectors, only those of emoji stay: others have no use on a page, and can hold a value apart. */
const UNSEEN = unseenBut(String.raw`\t\n\u200c\u200d\ufe0e\ufe0f`)

const literal = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')

/** What the texts of a conversation must not show. */
export interface HiddenTexts {
  readonly masker: Masker
  /** The tokens of the privacy shield, with the values that they stand for. */
  readonly tokens?: readonly { readonly token: string; readonly value: string }[]
  readonly place: Pick<Place, 'workspace' | 'data' | 'publicPages' | 'previews'>
  /** Hosts of the sandbox, with their ports. */
  readonly hosts: readonly string[]
}

/** Everything that leaves passes here: stored values, keys, folders and addresses of the sandbox are replaced. */
export class Reduction {
  readonly #masker: Masker
  readonly #shielded: PhraseMatcher<string>
  readonly #folders: RegExp
  readonly #addresses: RegExp
  readonly #counts = new Map<Redaction['kind'], number>()

  constructor({ masker, tokens = [], place: { workspace, data, publicPages, previews }, hosts }: HiddenTexts) {
    this.#masker = masker
    this.#shielded = new PhraseMatcher(tokens.map(({ token, value }) => ({ text: value, id: token, wholeWord: true })))
    // A private copy is what the workspace is to its conversation.
    const copies = `(?:(?:\\/[\\w-]+)*?\\/checkouts\\/[\\w-]+)?`
    this.#folders = new RegExp(`(?:${literal(data)}${copies}|${literal(workspace)})(?![\\w.-])`, 'g')
    const named = [publicPages.url, previews.zone].flatMap(url => (url === undefined ? [] : [new URL(url).host]))
    const all = [...hosts, ...named, ...(publicPages.host === undefined ? [] : [publicPages.host])].map(literal)
    // Previews are below the zone, or below localhost.
    const host = `(?:(?:[\\w-]+\\.)*(?:${all.join('|')})|(?:[\\w-]+\\.)+localhost:\\d+)`
    this.#addresses = new RegExp(`(?:https?|wss?):\\/\\/${host}(?![\\w:-]|\\.[\\w-])[^\\s"'<>)\\]]*`, 'gi')
  }

  /** A text as it may leave. */
  text(given: string): string {
    const text = this.#reduced(given.toWellFormed())
    const seen = text.replace(UNSEEN, '')
    // A value that such characters stood between is one again without them.
    return seen === text ? text : this.#reduced(seen)
  }

  #reduced(given: string): string {
    let text = this.#tokens(this.#masker.mask(given)).replace(REFERENCE, () => this.#counted('secret', REDACTED))
    text = text.replace(this.#addresses, ADDRESS).replace(this.#folders, () => this.#counted('path', '~'))
    const before = countOf(text)
    text = redacted(text)
    this.#add('pattern', countOf(text) - before)
    return text
  }

  get counts(): Redaction[] {
    return [...this.#counts].map(([kind, count]) => ({ kind, count }))
  }

  /** The text with tokens in place of the values that the privacy shield knows. */
  #tokens(text: string): string {
    let out = ''
    let from = 0
    for (const { start, end, id } of this.#shielded.places(text)) {
      if (start < from) continue
      out += text.slice(from, start) + this.#counted('shield', id)
      from = end
    }
    return from === 0 ? text : out + text.slice(from)
  }

  #counted(kind: Redaction['kind'], instead: string): string {
    this.#add(kind, 1)
    return instead
  }

  #add(kind: Redaction['kind'], count: number): void {
    if (count > 0) this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + count)
  }
}

const countOf = (text: string): number => text.split(REDACTED).length - 1
