import type { Host } from '../../host.js'
import { refuse } from '../../refusal.js'
import { Masker } from './masker.js'

/** Masks the values of the secrets that are stored now. */
export const valueMasker = async (host: Pick<Host, 'call' | 'serves'>): Promise<Masker> =>
  new Masker((await host.serves('secrets.values')) ? (await host.call('secrets.values')).values : [])

/** Refuses what contains values of stored secrets: they are named by their references alone. */
export const assertNoValues = async (host: Pick<Host, 'call' | 'serves'>, given: object): Promise<void> => {
  const [name] = exposedIn(JSON.stringify(given), JSON.stringify((await valueMasker(host)).maskJson(given)))
  if (name !== undefined)
    refuse('unprocessable', `it contains the value of the secret ${name}: write {{secret:${name}}} in its place`)
}

/** The names of stored secrets whose values are in a text, given what masking makes of it. */
const exposedIn = (text: string, masked: string): string[] => {
  const counted = (all: string) => {
    const counts = new Map<string, number>()
    for (const [, name] of all.matchAll(/\{\{secret:([^{}]{1,200})\}\}/g))
      counts.set(name!, (counts.get(name!) ?? 0) + 1)
    return counts
  }
  const before = counted(text)
  return [...counted(masked)].filter(([name, count]) => count > (before.get(name) ?? 0)).map(([name]) => name)
}

/** A masker of the values that were stored at a revision. */
export interface RevisedMasker {
  readonly masker: Masker
  readonly revision: number
}

/** The masker of the values that are stored now; made again only when they changed. */
export class CurrentMasker {
  readonly #host: Pick<Host, 'call' | 'serves'>
  #kept: RevisedMasker = { masker: new Masker([]), revision: -1 }

  constructor(host: Pick<Host, 'call' | 'serves'>) {
    this.#host = host
  }

  async now(): Promise<RevisedMasker> {
    if (!(await this.#host.serves('secrets.values'))) return this.#kept
    const { values, revision } = await this.#host.call('secrets.values')
    if (revision !== this.#kept.revision) this.#kept = { masker: new Masker(values), revision }
    return this.#kept
  }
}
