import { lineArt } from '../../sdk/node/line-art.js'
import { refuse } from '../../sdk/index.js'
import type { CapabilityStatus, CardField, ContributedKind, KindEntry, KindStep } from '../capabilities/contract.js'
import type { Handlers } from '../../sdk/contract.js'
import type { VpnKindCalls, VpnLink } from './contract.js'
import type { VpnEntries } from './links/entries.js'
import { VPN_KIND } from './links/entries.js'
import type { Links } from './links/links.js'
import type { LinkFolders } from './links/standing-file.js'
import { DH_GROUPS } from './settings/ipsec-conf.js'
import { TUNNEL_FIELDS, vpnSettingsOf } from './settings/settings.js'
import { missingSentence } from '../../sdk/node/tunnels/machine.js'
import { missingFor, type VpnMachine } from './system/machine.js'

const SWITCH = [
  { value: 'on', label: 'Yes' },
  { value: 'off', label: 'No' },
]
/** A field that is asked for where the tunnel has it. */
const ofSome = (field: CardField): CardField => {
  const providers = Object.keys(TUNNEL_FIELDS).filter(provider => TUNNEL_FIELDS[provider]!.includes(field.key))
  return { ...field, when: `provider in [${providers.join(', ')}]` }
}
const FORTINET_FIELDS: CardField[] = [
  { key: 'port', label: 'Port', optional: true, placeholder: '443' },
  { key: 'realm', label: 'Realm', optional: true },
  {
    key: 'trustedCert',
    label: 'Certificate',
    optional: true,
    placeholder: 'sha256:…',
    hint: 'Where nobody vouches for the certificate of the gateway.',
  },
]
/** What a tunnel of IPsec is set up with, which has no configuration of its own. */
const IPSEC_FIELDS: CardField[] = [
  { key: 'presharedKey', label: 'Pre-shared key', secret: true },
  { key: 'localId', label: 'Own identity', optional: true, hint: 'Such as the group.' },
  { key: 'remoteId', label: 'Identity of the server', optional: true, hint: 'Any unless set.' },
  {
    key: 'ikeVersion',
    label: 'Version of IKE',
    optional: true,
    options: ['1', '2'].map(value => ({ value, label: value })),
  },
  { key: 'pfs', label: 'New keys for each network (PFS)', optional: true, options: SWITCH },
  {
    key: 'dhGroup',
    label: 'Group of Diffie and Hellman',
    optional: true,
    options: Object.keys(DH_GROUPS).map(value => ({ value, label: value })),
  },
  { key: 'aggressive', label: 'Aggressive mode', optional: true, options: SWITCH, hint: 'With version 1 of IKE.' },
]

/** Connections of kind `vpn`, with the form that sets one up. */
export const VPN_CONNECTIONS: ContributedKind = {
  storedBy: 'capabilities',
  kind: VPN_KIND,
  card: {
    name: 'VPN',
    category: 'networks',
    description: 'A tunnel to a private network, with WireGuard, OpenVPN, Fortinet or IPsec.',
    hint: 'The sandbox itself goes through it, as far as its routes say.',
    art: lineArt('M12 3l8 3v6c0 4.5-3.3 7.7-8 9-4.7-1.3-8-4.5-8-9V6z', 'M9 12l2 2 4-4'),
    guide: {
      steps: [
        'Ask whoever runs the network for a configuration or an account of its own for this sandbox.',
        'For WireGuard and OpenVPN, copy the whole file; for the others, fill in the gateway and who signs in.',
        'Name the networks that you need, so that nothing else goes through the tunnel.',
      ],
    },
    fields: [
      {
        key: 'provider',
        label: 'Dialled with',
        options: [
          { value: 'wireguard', label: 'WireGuard' },
          { value: 'openvpn', label: 'OpenVPN' },
          { value: 'fortinet', label: 'Fortinet' },
          { value: 'ipsec', label: 'IPsec' },
        ],
      },
      ...[
        {
          key: 'config',
          label: 'Configuration',
          placeholder: 'the whole .conf or .ovpn file',
          hint: 'With keys and certificates in it; lines that run programs are refused.',
          secret: true,
          multiline: true,
        },
        { key: 'server', label: 'Server', placeholder: 'vpn.example.org' },
        { key: 'username', label: 'User', optional: true, hint: 'Where the gateway asks for one.' },
        { key: 'password', label: 'Password', secret: true, optional: true },
        { key: 'keyPassphrase', label: 'Passphrase of the key', secret: true, optional: true },
        ...FORTINET_FIELDS,
        ...IPSEC_FIELDS,
      ].map(ofSome),
      {
        key: 'autoConnect',
        label: 'Dial when the sandbox starts',
        optional: true,
        options: [
          { value: 'on', label: 'Yes' },
          { value: 'off', label: 'No' },
        ],
      },
      {
        key: 'routedNetworks',
        label: 'Only these networks',
        placeholder: '10.0.0.0/8, 192.168.4.0/24',
        optional: true,
      },
    ],
  },
  category: { id: 'networks', label: 'Networks', hint: 'Private networks that the sandbox reaches.' },
  mainSecret: 'config',
  largestSecret: 262_144,
  applyMs: 90_000,
  calls: {
    check: 'vpn.kindCheck',
    apply: 'vpn.kindApply',
    status: 'vpn.kindStatus',
    release: 'vpn.kindRelease',
    forget: 'vpn.kindForget',
    rename: 'vpn.kindRename',
  },
}

export interface VpnKindDeps {
  readonly links: Links
  readonly entries: VpnEntries
  readonly folders: LinkFolders
  readonly machine: VpnMachine
}

/** The calls with which capabilities serves the kind. */
export const vpnKindCalls = ({ links, entries, folders, machine }: VpnKindDeps): Handlers<VpnKindCalls> => {
  async function* apply(entry: KindEntry): AsyncGenerator<KindStep, void> {
    const { id } = entry
    const settings = vpnSettingsOf(entry)
    const wasUp = await links.isUp(id)
    if (!settings.autoConnect && !wasUp) {
      yield { kind: 'log', message: `it is dialled with POST /vpn/${id}/connect` }
      yield { kind: 'status', status: { state: 'inactive', detail: 'it is disconnected', checkedAt: Date.now() } }
      return
    }
    const missing = await missingFor(settings.provider, settings, machine)
    if (missing.length > 0) refuse('missing-program', missingSentence(missing))
    if (wasUp) await links.drop(id)
    try {
      const steps = (await links.dial(id, settings))[Symbol.asyncIterator]()
      for (let step = await steps.next(); ; step = await steps.next()) {
        if (step.done) return yield { kind: 'status', status: statusOf(step.value.link) }
        if (step.value.kind === 'log') yield step.value
      }
    } catch (error) {
      // What is stored still holds.
      if (wasUp) links.again(id)
      throw error
    }
  }
  return {
    'vpn.kindCheck': entry => {
      vpnSettingsOf(entry)
      return { ok: true }
    },
    'vpn.kindApply': entry => apply(entry),
    'vpn.kindStatus': async ({ id }) => {
      entries.forget(id)
      return statusOf(await links.views.link(await entries.get(id)))
    },
    'vpn.kindRelease': async ({ id }) => {
      await links.drop(id)
      return { ok: true }
    },
    'vpn.kindForget': async ({ id }) => {
      await links.drop(id)
      entries.forget(id)
      await folders.remove(id)
      return { ok: true }
    },
    'vpn.kindRename': async ({ id, to }) => {
      if (await links.isUp(id)) refuse('conflict', `${id} is up: disconnect it, then give it another name`)
      entries.forget(id)
      await folders.rename(id, to)
      return { ok: true }
    },
  }
}

const statusOf = ({ state, detail }: VpnLink): CapabilityStatus => {
  const checkedAt = Date.now()
  const why = detail === undefined ? {} : { detail }
  switch (state) {
    case 'connected':
      return { state: 'active', checkedAt }
    case 'connecting':
      return { state: 'pending', code: 'starting', detail: detail ?? 'it is being dialled', checkedAt }
    case 'disconnected':
      return { state: 'inactive', detail: detail ?? 'it is disconnected', checkedAt }
    case 'unavailable':
      return { state: 'error', code: 'missing-program', ...why, checkedAt }
    case 'failed':
      return { state: 'error', code: 'unreachable', ...why, checkedAt }
  }
}
