import {
  assertInventory,
  isEntryName,
  kindOfEntry,
  secretsOf,
  type AppEntry,
  type BackendEntry,
  type DeployEntry,
  type ServiceEntry,
} from './entries.js'

/** The repository of what should run, and of what does. */
export const DESIRED = 'desired-state'
/** What should run, as `deploy resolve` writes it. */
export const DESIRED_FILE = 'desired.json'
/** What runs, as `deploy adopt` writes it. */
export const RUNNING_FILE = 'running.json'

/** A machine that something runs on. */
export interface DeployHost {
  readonly name: string
  readonly address: string
  readonly user: string
  readonly port: number
  /** The only host key that is accepted. */
  readonly hostKey: string
  readonly engine: 'podman' | 'docker'
  /** The name of its private key in the secret store, and of the variable that has it. */
  readonly sshKey: string
}

/** The part of a compose file that entries need. */
export interface ComposeFile {
  readonly services: { readonly main: { readonly [key: string]: unknown } }
  readonly volumes?: { readonly [name: string]: object }
}

/** One service or app that should run. */
export interface DesiredNode {
  readonly name: string
  /** `app`, or the service. */
  readonly type: string
  readonly kind: 'app' | 'service'
  readonly host: string
  readonly compose: ComposeFile
  /** The folder that its image is built of. */
  readonly source?: { readonly path: string; readonly digest: string }
  /** Names of stored values that become lines of its environment: whole lines, or the value of `variable`. */
  readonly secrets: readonly { readonly key: string; readonly variable?: string; readonly required: boolean }[]
}

/** Everything that should run. */
export interface DesiredState {
  readonly version: 1
  /** Tells what this sandbox runs on a machine from what others run there. */
  readonly id: string
  readonly hosts: readonly DeployHost[]
  readonly nodes: readonly DesiredNode[]
}

/** What runs, as it was seen last. */
export interface RunningState {
  readonly version: 1
  readonly hosts: readonly DeployHost[]
  readonly nodes: readonly { readonly name: string; readonly host: string; readonly digest: string }[]
}

/** A machine of the inventory. */
export const deployHostOf = (entry: BackendEntry): DeployHost => {
  const { address, user, port = 22, hostKey, engine = 'podman' } = entry.values
  return {
    name: entry.name,
    address: String(address),
    user: String(user),
    port: Number(port),
    hostKey: String(hostKey),
    engine: engine === 'docker' ? 'docker' : 'podman',
    sshKey: secretsOf(entry)[0]!.key,
  }
}

/**
 * What a record says of what runs; undefined: it cannot be used. It lies in the workspace, where others write too: its
 * machines must be such as could be declared, each with the key of its own name.
 */
export const runningStateOf = (text: string): RunningState | undefined => {
  try {
    const { hosts, nodes } = JSON.parse(text) as RunningState
    const isUsable =
      Array.isArray(hosts) && Array.isArray(nodes) && hosts.every(couldBeDeclared) && nodes.every(namesPlace)
    return isUsable ? { version: 1, hosts, nodes } : undefined
  } catch {
    return undefined
  }
}

const couldBeDeclared = ({ name, address, user, port, hostKey, engine, sshKey }: DeployHost): boolean => {
  const values = { address, user, port, hostKey, engine }
  const entry = { kind: 'backend', provider: 'host', name, values } as const
  assertInventory([entry])
  return isEntryName(name) && sshKey === deployHostOf(entry).sshKey
}

const namesPlace = ({ name, host }: RunningState['nodes'][number]): boolean => isEntryName(name) && isEntryName(host)

const valueOf = (entry: DeployEntry, key: string): string | number | undefined =>
  entry.values[key] ?? kindOfEntry(entry)?.options.find(option => option.key === key)?.default

/** What the services of the list need beside their options. */
const SERVICES: {
  readonly [service: string]: { readonly port: number; readonly folder: string; readonly password?: string }
} = {
  postgres: { port: 5432, folder: '/var/lib/postgresql/data', password: 'POSTGRES_PASSWORD' },
  redis: { port: 6379, folder: '/data' },
}

const portsOf = (entry: AppEntry | ServiceEntry, inside: string | number | undefined): string[] => {
  const { publish } = entry.values
  if (inside === undefined) return []
  const outside = `${publish ?? valueOf(entry, 'publish') ?? inside}:${inside}`
  return [entry.expose === '' ? `127.0.0.1:${outside}` : outside]
}

/** A service or app as it should run; an app gets its image when it is built. */
export const nodeOf = (entry: AppEntry | ServiceEntry, source?: DesiredNode['source']): DesiredNode => {
  const known = entry.kind === 'service' ? SERVICES[entry.service] : undefined
  const image = valueOf(entry, 'image')
  const folder = known?.folder ?? valueOf(entry, 'volume')
  const database = valueOf(entry, 'database')
  const ports = portsOf(entry, known?.port ?? valueOf(entry, 'port'))
  const main = {
    ...(image !== undefined && { image }),
    restart: 'unless-stopped',
    ...(ports.length > 0 && { ports }),
    ...(folder !== undefined && { volumes: [`data:${folder}`] }),
    ...(database !== undefined && { environment: { POSTGRES_DB: database } }),
    env_file: ['environment'],
  }
  return {
    name: entry.name,
    type: entry.kind === 'service' ? entry.service : 'app',
    kind: entry.kind,
    host: entry.on,
    compose: { services: { main }, ...(folder !== undefined && { volumes: { data: {} } }) },
    ...(source && { source }),
    secrets: secretsOf(entry).map(({ option, key, required }) => ({
      key,
      required,
      ...(option === 'password' && known?.password !== undefined && { variable: known.password }),
    })),
  }
}

/** The hosts that something should run on, or runs on. */
export const usedHosts = (
  declared: readonly DeployHost[],
  nodes: readonly { readonly host: string }[],
  running: RunningState | undefined,
): DeployHost[] => {
  const names = new Set([...nodes, ...(running?.nodes ?? [])].map(({ host }) => host))
  const known = new Map([...(running?.hosts ?? []), ...declared].map(host => [host.name, host]))
  return [...names].flatMap(name => known.get(name) ?? []).sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** The names of stored values that commands of `deploy` need for an inventory: those that must be there first. */
export const deploySecretKeys = (
  entries: readonly DeployEntry[],
  running: RunningState | undefined,
): { readonly required: string[]; readonly others: string[] } => {
  const works = entries.filter((entry): entry is AppEntry | ServiceEntry => entry.kind !== 'backend')
  const declared = entries.flatMap(entry =>
    entry.kind === 'backend' && entry.provider === 'host' ? [deployHostOf(entry)] : [],
  )
  const hosts = usedHosts(
    declared,
    works.map(({ on }) => ({ host: on })),
    running,
  )
  const secrets = works.flatMap(entry => secretsOf(entry))
  return {
    required: [
      ...hosts.map(({ sshKey }) => sshKey),
      ...secrets.flatMap(({ key, required }) => (required ? [key] : [])),
    ],
    others: secrets.flatMap(({ key, required }) => (required ? [] : [key])),
  }
}
