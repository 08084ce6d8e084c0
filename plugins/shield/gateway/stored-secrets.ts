import type { Host } from '../../../sdk/index.js'
import { formsOf, LEAST_MASKED } from '../../../sdk/node/access/mask-forms.js'
import { PhraseMatcher, type Phrase } from '../../../sdk/node/access/phrase-matcher.js'
import type { StoredForms } from '../detect/find-personal-data.js'

/** The key of the shield itself is no secret of a person's. */
const OWN = 'shield/'

/** The stored secrets in all forms in which they may appear, at one revision of the store. */
export interface RevisedForms {
  readonly phrases: readonly Phrase<string>[]
  readonly stored: StoredForms
  readonly revision: number
}

/** The secrets that are stored now; searched for in what leaves. */
export class StoredSecrets {
  readonly #host: Pick<Host, 'call' | 'serves'>
  #kept: RevisedForms = { phrases: [], stored: new PhraseMatcher([]), revision: -1 }

  constructor(host: Pick<Host, 'call' | 'serves'>) {
    this.#host = host
  }

  /** Made again only when the secrets changed; fails when they cannot be read. */
  async now(): Promise<RevisedForms> {
    if (!(await this.#host.serves('secrets.values'))) return this.#kept
    const { values, revision } = await this.#host.call('secrets.values')
    if (revision === this.#kept.revision) return this.#kept
    const phrases = values
      .filter(({ name, value }) => value.length >= LEAST_MASKED && !name.startsWith(OWN))
      .flatMap(({ name, value }) => [...formsOf(value)].map(text => ({ text, id: name, caseSensitive: true })))
    this.#kept = { phrases, stored: new PhraseMatcher(phrases), revision }
    return this.#kept
  }
}
