import { lineArt } from '../../sdk/node/line-art.js'
import { refuse, type Handlers, type Host } from '../../sdk/index.js'
import type { CapabilityStatus, CardField, KindEntry, KindStep, StoredKind } from '../capabilities/contract.js'
import { chooseCarrier } from './carriers/choosing.js'
import type { DiskKindCalls, DiskLink } from './contract.js'
import type { Disks } from './disks.js'
import {
  checkSignIn,
  checkTarget,
  DISK_KIND,
  DISK_SECRETS,
  diskConfigOf,
  diskSecretFields,
  type DiskEntry,
  type DiskSecrets,
} from './entry.js'
import { linkPlace } from './link.js'
import { probeServer } from './servers/probe.js'

const choice = (key: string, label: string, ...values: string[]): CardField => ({
  key,
  label,
  optional: true,
  options: values.map(value => ({ value, label: value })),
})

/** Fields that are asked for with some protocols. */
const withSome = (protocols: string, ...fields: CardField[]): CardField[] =>
  fields.map(field => ({ ...field, when: `provider in [${protocols}]` }))

const FIELDS: CardField[] = [
  { ...choice('provider', 'Protocol', 'smb', 'nfs', 'sshfs', 'webdav'), optional: false },
  ...withSome('smb, nfs', { key: 'server', label: 'Server', hint: 'Its name or address.' }),
  ...withSome('smb', { key: 'share', label: 'Share' }),
  ...withSome('nfs', { key: 'export', label: 'Export', placeholder: '/srv/files' }),
  ...withSome('sshfs', { key: 'host', label: 'Host', hint: 'Its name or address.' }),
  ...withSome('webdav', { key: 'url', label: 'Address', placeholder: 'https://cloud.example.org/dav' }),
  ...withSome('smb, sshfs', { key: 'port', label: 'Port', optional: true, hint: 'Unless it is the usual one.' }),
  ...withSome('smb, sshfs', { key: 'path', label: 'Folder', optional: true, hint: 'With smb, a folder of the share.' }),
  ...withSome('sshfs', { key: 'user', label: 'User' }),
  ...withSome('smb, webdav', { key: 'username', label: 'User name', optional: true }),
  ...withSome('smb', { key: 'domain', label: 'Domain', optional: true }),
  ...withSome('smb, sshfs, webdav', { key: 'password', label: 'Password', secret: true, optional: true }),
  ...withSome(
    'sshfs',
    { key: 'privateKey', label: 'Private key', secret: true, optional: true, multiline: true },
    { key: 'hostKey', label: 'Host key', optional: true, hint: 'Left out, the first one is pinned.' },
  ),
  ...withSome('webdav', {
    ...{ key: 'trustedCert', label: 'Certificate', optional: true },
    hint: 'Where nobody vouches for it, as sha256: and 64 digits.',
  }),
  ...withSome('smb, nfs', { key: 'version', label: 'Version', optional: true, hint: 'Unless the newest one.' }),
  choice('readOnly', 'Read only', 'off', 'on'),
  choice('autoMount', 'Mount at start', 'on', 'off'),
  choice('cache', 'Cache', 'writes', 'full', 'off'),
  { key: 'link', label: 'Link', optional: true, hint: 'A path of the workspace that leads to the share.' },
]

/** The kind of connections that are shares. */
export const SHARE_KIND: StoredKind = {
  storedBy: 'capabilities',
  kind: DISK_KIND,
  card: {
    name: 'Network disk',
    category: 'disks',
    description: 'A folder of another machine as a folder of this one.',
    hint: 'It is mounted on the page Disks.',
    art: lineArt('M4 6h16v5H4z', 'M4 13h16v5H4z', 'M7 8.5h0', 'M7 15.5h0'),
    guide: {
      steps: [
        'Make an account on the other machine that reaches this folder alone.',
        'Fill in where the folder is, and who signs in; the programs that mount it have to be on this machine.',
        'Connect it, then mount it on the page Disks.',
      ],
    },
    fields: FIELDS,
  },
  category: { id: 'disks', label: 'Disks', hint: 'Folders of other machines.' },
  mainSecret: 'password',
  largestSecret: 16_384,
  calls: {
    check: 'disks.check',
    apply: 'disks.apply',
    status: 'disks.status',
    release: 'disks.release',
    forget: 'disks.forget',
    rename: 'disks.rename',
  },
}

/** The share that fields of a connection describe; refuses what cannot be mounted. */
const entryOf = ({ id, config, secrets }: KindEntry): { entry: DiskEntry; secrets: DiskSecrets } => {
  const { port } = config
  const numbered = typeof port === 'string' && /^\d{1,5}$/.test(port) ? { ...config, port: Number(port) } : config
  const checked = diskConfigOf({ ...numbered, ...secrets })
  const fields = diskSecretFields(checked.provider)
  for (const field of Object.keys(secrets))
    if (!fields.includes(field)) refuse('invalid', `config.${field}: expected none for a share of ${checked.provider}`)
  checkTarget(checked, secrets)
  const shown = Object.fromEntries(Object.entries(checked).filter(([field]) => !(field in secrets)))
  const entry = { id, config: diskConfigOf(shown), secrets: DISK_SECRETS.filter(field => field in secrets) }
  checkSignIn(entry, secrets)
  return { entry, secrets }
}

/** The calls that serve connections of shares. */
export const kindCalls = (host: Pick<Host, 'call' | 'place' | 'signal'>, disks: Disks): Handlers<DiskKindCalls> => ({
  'disks.check': async given => {
    const { entry } = entryOf(given)
    const { link } = entry.config
    // The link of a share that is mounted is there already.
    if (link !== undefined && (await disks.shown(entry)).link !== link) await linkPlace(host.place.workspace, link)
    return { ok: true }
  },
  'disks.apply': given => apply(host, disks, given),
  'disks.status': async ({ id, config }) =>
    statusOf(await disks.shown({ id, config: diskConfigOf(config), secrets: [] })),
  'disks.release': async ({ id }, context) => disks.unmount(id, false, context),
  'disks.forget': async ({ id }) => {
    await disks.forget(id)
    return { ok: true }
  },
  'disks.rename': async ({ id, to }) => {
    await disks.rename(id, to)
    return { ok: true }
  },
})

/** Asks the server; one that cannot be reached now is recorded all the same, one that refuses the credential is not. */
async function* apply(host: Pick<Host, 'call' | 'signal'>, disks: Disks, given: KindEntry): AsyncGenerator<KindStep> {
  const { entry, secrets } = entryOf(given)
  const { chosen, reason } = await chooseCarrier(entry)
  yield { kind: 'log', message: chosen ? `${chosen.via} can mount it` : reason! }
  const probe = await probeServer(host, entry.config, secrets)
  if (probe.auth === 'refused') refuse('dependency', `the server refused the sign-in: ${probe.detail ?? ''}`)
  const answers = `the server answers after ${probe.latencyMs ?? 0} ms`
  const silent = `the server cannot be reached now: ${probe.detail ?? 'it does not answer'}`
  yield { kind: 'log', message: probe.reachable ? answers : silent }
  yield { kind: 'status', status: statusOf(await disks.shown(entry)) }
}

/** How a share stands, for the list of connections. */
const statusOf = ({ state, detail }: DiskLink): CapabilityStatus => {
  const checkedAt = Date.now()
  switch (state) {
    case 'mounted':
      return { state: 'active', checkedAt }
    case 'mounting':
      return { state: 'pending', code: 'starting', detail: 'it is being mounted', checkedAt }
    case 'unmounted':
      return { state: 'inactive', detail: 'it is not mounted', checkedAt }
    case 'unavailable':
      return { state: 'error', code: 'missing-program', detail: detail!, checkedAt }
    case 'stale':
    case 'failed':
      return { state: 'error', code: 'unreachable', detail: detail ?? 'its server does not answer', checkedAt }
  }
}
