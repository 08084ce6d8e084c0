import { readFile } from 'node:fs/promises'
import type { Files } from '../../sdk/index.js'
import { ListFailure, type ListedServer, listServer } from '../../sdk/node/models/model-list.js'
import { bytesOf, outgoing } from '../../sdk/node/models/outgoing.js'
import type { ModelRow, TrialStatus } from './contract.js'

/** Where the trial's server is, and the file with its bearer token. */
export interface TrialPlace {
  readonly url: string
  readonly tokenFile?: string
}

/** What the trial gives: its status, its models, and the same in one place for those who must not wait. */
export interface KnownTrial {
  readonly status: TrialStatus
  readonly models: ModelRow[]
  readonly apiBase?: string
}

const FILE = 'trial'
const WITHIN = 5_000
const MOST_ANSWER = 64 * 1024
const HEALTH: readonly string[] = ['healthy', 'degraded', 'unavailable'] satisfies TrialStatus['health'][]

const NONE: TrialStatus = { available: false, allowance: 0, used: 0, remaining: 0, health: 'unknown' }

/** The free trial of the deployment: asked at each call, and the last answer kept. */
export class Trial {
  readonly #place: TrialPlace | undefined
  readonly #files: Pick<Files, 'read' | 'write'>
  readonly #signal: AbortSignal
  readonly #changed: () => void
  #known: KnownTrial | undefined

  constructor(
    place: TrialPlace | undefined,
    { files, signal, changed }: { files: Pick<Files, 'read' | 'write'>; signal: AbortSignal; changed: () => void },
  ) {
    this.#place = place
    this.#files = files
    this.#signal = signal
    this.#changed = changed
  }

  /** The last answer, without asking. */
  async known(): Promise<KnownTrial> {
    if (!this.#place) return { status: NONE, models: [] }
    return (this.#known ??= (await this.#files.read<KnownTrial>(FILE)) ?? { status: NONE, models: [] })
  }

  /** What is left now, as its server says; the last answer when it says nothing. */
  async ask(): Promise<TrialStatus> {
    const before = await this.known()
    if (!this.#place) return before.status
    const status = await this.#status(this.#place).catch(() => undefined)
    if (!status) return before.status
    const list = status.available ? await this.#list().catch(() => undefined) : undefined
    await this.#keep(before, { ...before, status, ...list })
    return status
  }

  /** How a turn speaks to it. */
  async server(): Promise<ListedServer | undefined> {
    if (!this.#place) return undefined
    const token = await this.#token(this.#place)
    return {
      protocol: 'openai',
      baseUrl: this.#place.url,
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      secrets: token === undefined ? [] : [token],
    }
  }

  async #token({ tokenFile }: TrialPlace): Promise<string | undefined> {
    return tokenFile === undefined ? undefined : (await readFile(tokenFile, 'utf8')).trim()
  }

  async #status(place: TrialPlace): Promise<TrialStatus | undefined> {
    const server = await this.server()
    const answer = await outgoing({
      url: `${place.url.replace(/\/+$/, '')}/status`,
      headers: server?.headers ?? {},
      signal: this.#signal,
      within: WITHIN,
    })
    const { bytes } = await bytesOf(answer, MOST_ANSWER, WITHIN)
    if (answer.status === 404) return NONE
    return answer.status === 200 ? statusOf(JSON.parse(bytes.toString('utf8'))) : undefined
  }

  async #list(): Promise<Pick<KnownTrial, 'models' | 'apiBase'> | undefined> {
    const server = await this.server()
    try {
      return server && (await listServer(server, this.#signal, WITHIN))
    } catch (error) {
      if (error instanceof ListFailure) return undefined
      throw error
    }
  }

  async #keep(before: KnownTrial, known: KnownTrial): Promise<void> {
    this.#known = known
    if (JSON.stringify(before) !== JSON.stringify(known)) await this.#files.write(FILE, known)
    if (before.status.available !== known.status.available) this.#changed()
  }
}

/** What an answer says, with everything that is none of the fields left out. */
const statusOf = (value: unknown): TrialStatus | undefined => {
  if (typeof value !== 'object' || value === null) return undefined
  const { available, allowance, used, remaining, health, resetsAt, retryAt, servedModel } = value as {
    [field: string]: unknown
  }
  const count = (given: unknown) =>
    Number.isInteger(given) && Number(given) >= 0 && Number(given) < 2 ** 32 ? Number(given) : 0
  const time = (given: unknown) =>
    typeof given === 'string' && !Number.isNaN(Date.parse(given)) ? new Date(given).toISOString() : undefined
  const [resets, retry] = [time(resetsAt), time(retryAt)]
  return {
    available: available !== false,
    allowance: count(allowance),
    used: count(used),
    remaining: count(remaining),
    health: HEALTH.includes(String(health)) ? (health as TrialStatus['health']) : 'unknown',
    ...(resets !== undefined && { resetsAt: resets }),
    ...(retry !== undefined && { retryAt: retry }),
    ...(typeof servedModel === 'string' && servedModel && { servedModel: servedModel.slice(0, 200) }),
  }
}
