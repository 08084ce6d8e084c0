/** One option of what may be declared. */
export interface InventoryOption {
  key: string
  label: string
  type: 'string' | 'number' | 'enum'
  required: boolean
  /** Its value is in the secret store, and never in the file. */
  secret: boolean
  default?: string | number
  /** Of type `enum`. */
  values?: string[]
  /** A regular expression that the value fits. */
  pattern?: string
  /** Of a secret option it names the pattern of its name in the secret store. */
  description?: string
}
/** Something that may be declared. */
export interface InventoryKind {
  kind: 'backend' | 'service' | 'app'
  /** The provider or the service; none for apps. */
  id?: string
  label: string
  description: string
  /** May be named in `expose`. */
  exposes: boolean
  options: InventoryOption[]
}

const text = (key: string, label: string, pattern?: string): InventoryOption => ({
  key,
  label,
  type: 'string',
  required: false,
  secret: false,
  ...(pattern !== undefined && { pattern }),
})

const needed = (option: InventoryOption): InventoryOption => ({ ...option, required: true })

const port = (key: string, label: string, description: string): InventoryOption => ({
  key,
  label,
  type: 'number',
  required: false,
  secret: false,
  pattern: '^([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$',
  description,
})

const hidden = (key: string, label: string, store: string, description: string): InventoryOption => ({
  key,
  label,
  type: 'string',
  required: false,
  secret: true,
  description: `${description} Its name in the secret store: ${store}<NAME>.`,
})

const IMAGE = '^[a-z0-9]([a-zA-Z0-9._/:@-]*[a-zA-Z0-9])?$'
const FOLDER = '^/[^\\s:,"\'$\\\\]+$'
const PUBLISHED = port('publish', 'Port on the machine', 'Left out: the same port as in the container.')
const ENVIRONMENT = 'Lines KEY=value that the program gets as its environment.'

/** The store key prefix of each secret option, by kind and option. */
const STORE_KEYS: { readonly [of: string]: string } = {
  'backend.sshKey': 'HOST_SSH_KEY_',
  'service.environment': 'SERVICE_ENV_',
  'service.password': 'SERVICE_PASSWORD_',
  'app.environment': 'APP_ENV_',
}

/** The name under which the secret store has a secret option of an entry. */
export const storeKeyOf = (kind: InventoryKind['kind'], option: string, name: string): string =>
  `${STORE_KEYS[`${kind}.${option}`]}${name.toUpperCase()}`

/** What may be declared, and with which options. */
export const DEPLOY_KINDS: readonly InventoryKind[] = [
  {
    kind: 'backend',
    id: 'host',
    label: 'Machine',
    description: 'A machine reached over SSH, with podman or docker and its compose.',
    exposes: true,
    options: [
      needed({
        ...text('address', 'Address', '^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?$|^[0-9a-fA-F:]*:[0-9a-fA-F:.]*$'),
        description: 'Its name or address.',
      }),
      needed(text('user', 'User', '^[a-z_][a-z0-9_.-]{0,63}$')),
      { ...port('port', 'SSH port', 'Where its SSH server listens.'), default: 22 },
      {
        ...needed(text('hostKey', 'Host key', '^[a-z][a-z0-9@.-]+ [A-Za-z0-9+/]+={0,3}$')),
        description:
          'The public key of the machine, such as ssh-ed25519 AAAA…: ssh-keyscan prints it. No other is accepted.',
      },
      {
        ...text('engine', 'Engine'),
        type: 'enum',
        values: ['podman', 'docker'],
        default: 'podman',
        description: 'What runs containers there; podman-compose or docker compose has to be installed with it.',
      },
      { ...hidden('sshKey', 'SSH key', 'HOST_SSH_KEY_', 'A private key without a passphrase.'), required: true },
    ],
  },
  {
    kind: 'service',
    id: 'container',
    label: 'Container',
    description: 'Any image.',
    exposes: false,
    options: [
      needed(text('image', 'Image', IMAGE)),
      port('port', 'Port', 'Where the program listens in its container.'),
      PUBLISHED,
      { ...text('volume', 'Folder to keep', FOLDER), description: 'A folder of the container that outlives it.' },
      hidden('environment', 'Environment', 'SERVICE_ENV_', ENVIRONMENT),
    ],
  },
  {
    kind: 'service',
    id: 'postgres',
    label: 'PostgreSQL',
    description: 'A PostgreSQL database whose data outlives its container.',
    exposes: false,
    options: [
      { ...text('image', 'Image', IMAGE), default: 'docker.io/library/postgres:16' },
      { ...text('database', 'Database', '^[a-z_][a-z0-9_]{0,62}$'), default: 'app' },
      { ...PUBLISHED, default: 5432 },
      {
        ...hidden('password', 'Password', 'SERVICE_PASSWORD_', 'The password of the user postgres.'),
        required: true,
      },
    ],
  },
  {
    kind: 'service',
    id: 'redis',
    label: 'Redis',
    description: 'A Redis server whose data outlives its container.',
    exposes: false,
    options: [
      { ...text('image', 'Image', IMAGE), default: 'docker.io/library/redis:7' },
      { ...PUBLISHED, default: 6379 },
    ],
  },
  {
    kind: 'app',
    label: 'App',
    description: 'A folder of the workspace with a Containerfile or Dockerfile, built and run on a machine.',
    exposes: false,
    options: [
      needed({
        ...text('source', 'Folder', '^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$'),
        description: 'A path of the workspace.',
      }),
      port('port', 'Port', 'Where the program listens in its container.'),
      PUBLISHED,
      { ...text('volume', 'Folder to keep', FOLDER), description: 'A folder of the container that outlives it.' },
      hidden('environment', 'Environment', 'APP_ENV_', ENVIRONMENT),
    ],
  },
]

/** What may be declared under a kind and its provider or service. */
export const declaredKind = (kind: string, id: string | undefined): InventoryKind | undefined =>
  DEPLOY_KINDS.find(each => each.kind === kind && each.id === id)
