import type { Host } from '../../host.js'
import { Masker } from './masker.js'

/** Masks the values of the secrets that are stored now. */
export const valueMasker = async (host: Pick<Host, 'call' | 'serves'>): Promise<Masker> =>
  new Masker((await host.serves('secrets.values')) ? (await host.call('secrets.values')).values : [])

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
