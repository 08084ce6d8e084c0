import { createHash } from 'node:crypto'
import type { DesiredNode } from '../../node/deploy/desired.js'

/** What a machine says of something that runs there. */
export interface SeenNode {
  readonly name: string
  readonly digest: string
  /** How many of its containers run. */
  readonly running: number
}

/** What has to be done to one service or app. */
export interface PlannedNode {
  readonly host: string
  readonly name: string
  readonly action: 'create' | 'update' | 'delete' | 'none'
  readonly detail?: string
  /** What it should be; absent where it should not be. */
  readonly node?: DesiredNode
}

/** Stored values by name, as the environment of the program has them. */
export type DeployValuesByName = { readonly [name: string]: string | undefined }

/** The environment of a service or app, as the file of its container has it. */
export const environmentOf = (node: DesiredNode, values: DeployValuesByName): string => {
  const lines = node.secrets.flatMap(({ key, variable }) => {
    const value = values[key]
    if (value === undefined) return []
    return variable === undefined
      ? value.split(/\r?\n/).filter(line => /^[A-Za-z_][A-Za-z0-9_]*=/.test(line))
      : [`${variable}=${value}`]
  })
  return lines.map(line => `${line}\n`).join('')
}

/**
 * The service of a compose file, in the form in which an engine takes its environment word for word. Podman takes the
 * lines of a file as they are. Docker reads quotes, comments and variables in such lines, so it gets the environment in
 * the JSON of the compose file, where only dollars mean something.
 */
export const serviceFor = (
  { env_file: file, environment: own, ...main }: DesiredNode['compose']['services']['main'],
  environment: string,
  engine: 'podman' | 'docker',
): object => {
  if (engine === 'podman') return { ...main, ...(own !== undefined && { environment: own }), env_file: file }
  const pairs = environment
    .split('\n')
    .filter(Boolean)
    .map(line => /^([^=]*)=(.*)$/s.exec(line)!)
    .map(([, name = '', value = '']) => [name, value.replaceAll('$', '$$$$')])
  return { ...main, environment: { ...(own as object | undefined), ...(Object.fromEntries(pairs) as object) } }
}

/** What tells one configuration of a service or app from another. */
export const digestOf = (node: DesiredNode, environment: string): string =>
  createHash('sha256')
    .update(JSON.stringify([node.compose, node.source?.digest, environment]))
    .digest('hex')

/** Compares what should run on a machine with what does; what has to go comes first. */
export const planFor = (
  host: string,
  desired: readonly { readonly node: DesiredNode; readonly digest: string }[],
  seen: readonly SeenNode[],
): PlannedNode[] => {
  const gone = seen.filter(({ name }) => desired.every(({ node }) => node.name !== name))
  return [
    ...gone.map(({ name }): PlannedNode => ({ host, name, action: 'delete' })),
    ...desired.map(({ node, digest }): PlannedNode => {
      const { name } = node
      const found = seen.find(each => each.name === name)
      if (!found) return { host, name, node, action: 'create' }
      if (found.digest !== digest) return { host, name, node, action: 'update', detail: 'its configuration changed' }
      if (found.running === 0) return { host, name, node, action: 'update', detail: 'it does not run' }
      return { host, name, node, action: 'none' }
    }),
  ]
}
