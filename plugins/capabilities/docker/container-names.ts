/** An object of JSON. */
export type EngineFields = { [field: string]: unknown }

const NAME = /^[a-z0-9](?:[a-z0-9_.-]{0,61}[a-z0-9])?$/i
const MOST = 200
const SERVICE = 'com.docker.compose.service'

const fieldsOf = (value: unknown): EngineFields =>
  typeof value === 'object' && value !== null ? (value as EngineFields) : {}

const textsIn = (value: unknown): string[] =>
  (Array.isArray(value) ? value : [value]).filter(each => typeof each === 'string')

/** The names by which other containers of its network would find a container that is being made. */
export const containerNamesOf = (first: string, fields: EngineFields): string[] => {
  const url = URL.parse(first.split(' ')[1] ?? '', 'http://engine')
  const networks = [fields.Networks, fieldsOf(fields.NetworkingConfig).EndpointsConfig].flatMap(all =>
    Object.values(fieldsOf(all)),
  )
  const named = [
    url?.searchParams.get('name'),
    fields.name,
    ...[fields.labels, fields.Labels].map(labels => fieldsOf(labels)[SERVICE]),
    ...networks.flatMap(network => [fieldsOf(network).aliases, fieldsOf(network).Aliases]),
  ]
  return [...new Set(named.flatMap(textsIn).filter(name => NAME.test(name) && name !== 'localhost'))]
}

/**
 * The names of the containers of an engine. They all share one network, so each finds those made before it at the
 * loopback address, as the services of a compose file find what they depend on.
 */
export class ContainerNames {
  readonly #known = new Set<string>()

  get all(): string[] {
    return [...this.#known]
  }

  /** Notes the names of a container; returns the lines of hosts that it is made with, its own ones first. */
  hosts(asked: unknown, own: readonly string[]): string[] {
    for (const name of own) {
      this.#known.delete(name)
      this.#known.add(name)
    }
    for (const oldest of this.#known) {
      if (this.#known.size <= MOST) break
      this.#known.delete(oldest)
    }
    const given = textsIn(asked)
    const taken = new Set(given.map(line => line.slice(0, line.indexOf(':'))))
    return [...given, ...[...this.#known].filter(name => !taken.has(name)).map(name => `${name}:127.0.0.1`)]
  }
}
