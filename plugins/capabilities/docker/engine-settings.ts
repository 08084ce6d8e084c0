import { isIPv4 } from 'node:net'
import { refuse } from '../../../sdk/index.js'
import type { OpenEntry } from '../records/kinds.js'
import { ENGINE_FOLDER } from './engine-script.js'

/** What a connection says about its engine. */
export interface EngineSettings {
  readonly mirror?: string
  readonly insecure: readonly string[]
  readonly pool?: string
}

const MOST_REGISTRIES = 50

/** A host with a port perhaps, then folders perhaps: nothing that a settings file could read as more than a word. */
const REGISTRY = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?(?::[1-9]\d{0,4})?(?:\/[a-z0-9][a-z0-9._-]{0,127}){0,8}$/i

const registryOf = (field: string, text: string): string => {
  const found = text.trim()
  const port = Number(/:(\d+)(?:\/|$)/.exec(found)?.[1] ?? 1)
  if (!REGISTRY.test(found) || port > 65_535)
    refuse(
      'invalid',
      `config.${field}: expected a registry such as registry.example.org:5000, found ${JSON.stringify(found)}`,
    )
  return found
}

const MOST_BITS = 24
const LEAST_BITS = 8

const poolOf = (text: string): string => {
  const found = text.trim()
  const [address = '', bits = '', ...more] = found.split('/')
  const length = /^[1-9]\d?$/.test(bits) ? Number(bits) : 0
  const isPool = isIPv4(address) && length >= LEAST_BITS && length <= MOST_BITS && more.length === 0
  return isPool && isPrivate(address)
    ? found
    : refuse(
        'invalid',
        `config.addressPool: expected a private network such as 10.89.0.0/16, found ${JSON.stringify(found)}`,
      )
}

/** An address of RFC 1918. */
const isPrivate = (address: string): boolean => /^(?:10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.)/.test(address)

/** The settings of a connection; refuses what an engine behind the wall cannot have. */
export const engineSettings = ({ config }: Pick<OpenEntry, 'config'>): EngineSettings => {
  if (config.gpu === 'on')
    refuse('unprocessable', 'config.gpu: expected off, for containers reach no device of this machine')
  if (config.gpu !== undefined && config.gpu !== 'off')
    refuse('invalid', `config.gpu: expected on or off, found ${JSON.stringify(config.gpu)}`)
  const text = (field: string): string => String(config[field] ?? '').trim()
  const lines = text('insecureRegistries')
    .split('\n')
    .filter(line => line.trim() !== '')
  if (lines.length > MOST_REGISTRIES)
    refuse('invalid', `config.insecureRegistries: expected at most ${MOST_REGISTRIES} lines, found ${lines.length}`)
  const insecure = lines.map(line => registryOf('insecureRegistries', line))
  const mirror = text('registryMirror')
  const pool = text('addressPool')
  return {
    insecure: [...new Set(insecure)],
    ...(mirror !== '' && { mirror: registryOf('registryMirror', mirror) }),
    ...(pool !== '' && { pool: poolOf(pool) }),
  }
}

/** The files in which podman reads its settings (containers.conf(5), containers-registries.conf(5)), by name. */
export const engineFiles = ({ mirror, insecure, pool }: EngineSettings): { [name: string]: string } => ({
  'containers.conf': [
    '[containers]',
    // Limits hold for the whole conversation, and control groups are not visible behind the wall.
    'cgroups = "disabled"',
    'cgroupns = "host"',
    'default_ulimits = []',
    'ipcns = "private"',
    'log_driver = "k8s-file"',
    // That of the conversation: the wall hides the machine's.
    'netns = "host"',
    'pidns = "private"',
    'utsns = "private"',
    '[engine]',
    'cgroup_manager = "cgroupfs"',
    'events_logger = "file"',
    'runtime = "crun"',
    `tmp_dir = "${ENGINE_FOLDER}/run/libpod"`,
    '[engine.runtimes]',
    `crun = ["${ENGINE_FOLDER}/conf/runtime"]`,
    ...(pool === undefined ? [] : ['[network]', `default_subnet_pools = [{"base" = "${pool}", "size" = 24}]`]),
    '',
  ].join('\n'),
  'registries.conf': [
    'unqualified-search-registries = ["docker.io"]',
    ...(mirror === undefined
      ? []
      : [
          ...['[[registry]]', 'prefix = "docker.io"', 'location = "docker.io"'],
          ...['[[registry.mirror]]', `location = "${mirror}"`, `insecure = ${insecure.includes(mirror)}`],
        ]),
    ...insecure.flatMap(location => ['[[registry]]', `location = "${location}"`, 'insecure = true']),
    '',
  ].join('\n'),
})
