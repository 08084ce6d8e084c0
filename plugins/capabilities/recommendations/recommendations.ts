import { type Host, refuse } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { ConfigFile } from '../../../sdk/node/files/config-file.js'
import type { Recommendation, ShownConfig } from '../records/contract.js'
import { evidenceIn } from './evidence.js'

/** What is connected, as far as it answers a suggestion. */
export interface ConnectedCard {
  readonly card: string
  readonly config: ShownConfig
}

const FILE = '.sandbox/config/capability-dismissals.json'
const DEFAULTS: { readonly [card: string]: string } = { github: 'github.com', gitlab: 'gitlab.com' }

/** What the workspace suggests connecting, without what is connected and what people dismissed. */
export class Recommendations {
  readonly #host: Pick<Host, 'call' | 'serves' | 'place'>
  readonly #connected: () => Promise<readonly ConnectedCard[]>
  readonly #file: ConfigFile
  readonly #lock = new KeyedMutex()

  constructor(host: Pick<Host, 'call' | 'serves' | 'place'>, connected: () => Promise<readonly ConnectedCard[]>) {
    this.#host = host
    this.#connected = connected
    this.#file = new ConfigFile(host.place.workspace, FILE, 'dismissed suggestions')
  }

  async list(): Promise<Recommendation[]> {
    const [found, connected, { keys }] = await Promise.all([
      evidenceIn(this.#host),
      this.#connected(),
      this.#file.load(),
    ])
    const there = new Set(connected.map(({ card, config }) => `${card} ${placeOf(card, config)}`))
    return found.filter(
      each =>
        !there.has(`${each.card} ${placeOf(each.card, each.prefill)}`)
        && !dismissed(keys, each.card).includes(keyOf(each)),
    )
  }

  /** Dismisses a card on all evidence that it is suggested on now. */
  dismiss(card: string): Promise<void> {
    return this.#lock.with('', async () => {
      const shown = (await this.list()).filter(each => each.card === card)
      if (shown.length === 0) refuse('not-found', `${card} is not suggested now: GET /capabilities lists what is`)
      const kept = await this.#file.load()
      if (kept.wrong !== undefined) refuse('unprocessable', kept.wrong)
      const all = [...new Set([...dismissed(kept.keys, card), ...shown.map(keyOf)])].slice(-MOST_KEPT)
      await this.#file.save({ keys: { ...kept.keys, [card]: all }, mode: kept.mode })
      failpoint('capabilities.suggestion.dismissed')
    })
  }
}

const MOST_KEPT = 200

const dismissed = (keys: { readonly [card: string]: unknown }, card: string): string[] => {
  const value = Object.hasOwn(keys, card) ? keys[card] : undefined
  return Array.isArray(value) ? value.filter(each => typeof each === 'string') : []
}

const keyOf = ({ evidence, prefill }: Recommendation): string => `${evidence} ${JSON.stringify(prefill)}`

/** What tells connections of one card apart. */
const placeOf = (card: string, { host, url, command, args }: ShownConfig): string =>
  card === 'mcp' ? String(url ?? `${command} ${args ?? ''}`) : String(host ?? url ?? DEFAULTS[card] ?? '')
