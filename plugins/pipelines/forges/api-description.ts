import type { ForgeClient } from './client.js'
import type { PipelinePowers } from '../contract.js'
import { givenObject } from './given.js'

const KEPT_MS = 3_600_000
const MOST_DESCRIPTION = 16 * 1024 * 1024
const DESCRIPTION = '/swagger.v1.json'

/** The calls that the powers need: a method, and the end of a path whose parameters may have any name. */
const NEEDED: { readonly [power in keyof PipelinePowers | 'runs' | 'run']: readonly [method: string, path: string] } = {
  runs: ['get', 'runs'],
  run: ['get', 'runs/*'],
  jobs: ['get', 'runs/*/jobs'],
  log: ['get', 'jobs/*/logs'],
  rerun: ['post', 'runs/*/rerun'],
  rerunFailed: ['post', 'runs/*/rerun-failed-jobs'],
  cancel: ['post', 'runs/*/cancel'],
}

/** What a version of Forgejo or Gitea can do. */
export type DescribedPowers = { readonly [power in keyof typeof NEEDED]: boolean }

/** Reads what forges can do from the description of their interface; each one is asked once an hour. */
export class ApiDescriptions {
  readonly #known = new Map<string, { at: number; powers: Promise<DescribedPowers> }>()

  of(client: ForgeClient): Promise<DescribedPowers> {
    const known = this.#known.get(client.api)
    if (known && known.at > Date.now() - KEPT_MS) return known.powers
    const powers = read(client)
    this.#known.set(client.api, { at: Date.now(), powers })
    powers.catch(() => this.#known.delete(client.api))
    return powers
  }
}

const read = async (client: ForgeClient): Promise<DescribedPowers> => {
  const described = await client.json({ path: DESCRIPTION, at: 'site', maxBytes: MOST_DESCRIPTION })
  const calls = new Set<string>()
  for (const [path, methods] of Object.entries(givenObject(givenObject(described).paths))) {
    const end = /^\/repos\/\{[^}]+\}\/\{[^}]+\}\/actions\/(.+)$/.exec(path)?.[1]?.replace(/\{[^}]+\}/g, '*')
    if (end !== undefined) for (const method of Object.keys(givenObject(methods))) calls.add(`${method} ${end}`)
  }
  return Object.fromEntries(
    Object.entries(NEEDED).map(([power, [method, path]]) => [power, calls.has(`${method} ${path}`)]),
  ) as DescribedPowers
}
