import { lineArt } from '../../sdk/node/line-art.js'
import { refuse } from '../../sdk/index.js'
import type { Handlers } from '../../sdk/contract.js'
import type { CapabilityStatus, ContributedKind, KindEntry, KindStep } from '../capabilities/contract.js'
import type { ExitKindCalls, ExitLink } from './contract.js'
import { exitEntryOf, EXIT_KIND, type ExitEntries } from './exits/entries.js'
import type { Exits } from './exits/exits.js'
import type { ExitFolders } from './exits/folders.js'
import { exitSettingsOf, exitPortOf } from './settings/settings.js'

/** Connections of kind `exit`, with the form that sets one up. */
export const EXIT_CONNECTIONS: ContributedKind = {
  storedBy: 'capabilities',
  kind: EXIT_KIND,
  card: {
    name: 'Exit location',
    category: 'networks',
    description: 'A proxy whose traffic leaves from another country.',
    hint: 'Only what is pointed at it goes through it; the sandbox itself never does.',
    art: lineArt('M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z', 'M3 12h18', 'M12 3c3 3 3 15 0 18', 'M12 3c-3 3-3 15 0 18'),
    guide: {
      steps: [
        'Choose who carries the traffic: the onion network, free servers of OpenVPN, or WireGuard servers of your own.',
        'For WireGuard, paste one configuration after another, each with a comment such as: country: DE',
        'Connect it, then start it on the page Exits and choose its country there.',
      ],
    },
    fields: [
      {
        key: 'provider',
        label: 'Carried by',
        options: [
          { value: 'onion_router', label: 'Onion network (Tor)' },
          { value: 'public_vpn_pool', label: 'Free servers of OpenVPN' },
          { value: 'wireguard', label: 'WireGuard' },
        ],
      },
      {
        key: 'config',
        label: 'Configurations',
        placeholder: 'one or more whole .conf files, one after another',
        hint: 'Lines that run programs are refused.',
        secret: true,
        multiline: true,
        when: 'provider in [wireguard]',
      },
      { key: 'country', label: 'Country', placeholder: 'DE', optional: true, hint: 'Left out, the provider chooses.' },
      {
        key: 'autoStart',
        label: 'Start with the sandbox',
        optional: true,
        options: [
          { value: 'off', label: 'No' },
          { value: 'on', label: 'Yes' },
        ],
      },
    ],
  },
  category: {
    id: 'networks',
    label: 'Networks',
    hint: 'Private networks that the sandbox reaches, and ways out of it.',
  },
  mainSecret: 'config',
  largestSecret: 262_144,
  applyMs: 240_000,
  calls: {
    check: 'exit.kindCheck',
    apply: 'exit.kindApply',
    status: 'exit.kindStatus',
    release: 'exit.kindRelease',
    forget: 'exit.kindForget',
    rename: 'exit.kindRename',
  },
}

interface ExitKindDeps {
  readonly exits: Exits
  readonly entries: ExitEntries
  readonly folders: ExitFolders
}

/** The calls with which capabilities serves the kind. */
export const exitKindCalls = ({ exits, entries, folders }: ExitKindDeps): Handlers<ExitKindCalls> => {
  const assertFreePort = async (id: string): Promise<void> => {
    const other = (await entries.all()).find(entry => entry.id !== id && exitPortOf(entry.id) === exitPortOf(id))
    if (other) refuse('conflict', `${id} would have the same port as ${other.id}: give one of them another name`)
  }
  async function* apply(entry: KindEntry): AsyncGenerator<KindStep, void> {
    const { id } = entry
    const setup = exitSettingsOf(entry)
    await assertFreePort(id)
    const wasUp = await exits.isUp(id)
    if (wasUp) await exits.stop(id)
    // What a person chose before was for what was stored before.
    await folders.select(id, undefined)
    if (!wasUp) {
      yield { kind: 'log', message: `it is started with POST /exit/${id}/start` }
      yield { kind: 'status', status: { state: 'inactive', detail: 'it is down', checkedAt: Date.now() } }
      return
    }
    const asked = { kind: 'starting', setup, country: setup.country, chosen: false } as const
    const steps = (await exits.begin(exitEntryOf(id, entry.config)!, asked))[Symbol.asyncIterator]()
    for (let step = await steps.next(); ; step = await steps.next()) {
      if (step.done) return yield { kind: 'status', status: statusOf(step.value.link) }
      if (step.value.kind === 'log') yield step.value
    }
  }
  return {
    'exit.kindCheck': async entry => {
      exitSettingsOf(entry)
      await assertFreePort(entry.id)
      return { ok: true }
    },
    'exit.kindApply': entry => apply(entry),
    'exit.kindStatus': async ({ id }) => statusOf(await exits.views.link(await entries.get(id))),
    'exit.kindRelease': async ({ id }) => {
      await exits.stop(id)
      return { ok: true }
    },
    'exit.kindForget': async ({ id }) => {
      await exits.stop(id)
      await folders.remove(id)
      return { ok: true }
    },
    'exit.kindRename': async ({ id, to }) => {
      await assertFreePort(to)
      if (await exits.isUp(id)) refuse('conflict', `${id} is up: stop it, then give it another name`)
      await folders.rename(id, to)
      return { ok: true }
    },
  }
}

const statusOf = ({ state, detail }: ExitLink): CapabilityStatus => {
  const checkedAt = Date.now()
  const why = detail === undefined ? {} : { detail }
  switch (state) {
    case 'up':
      return { state: 'active', checkedAt }
    case 'starting':
      return { state: 'pending', code: 'starting', detail: detail ?? 'it is being started', checkedAt }
    case 'down':
      return { state: 'inactive', detail: detail ?? 'it is down', checkedAt }
    case 'unavailable':
      return { state: 'error', code: 'missing-program', ...why, checkedAt }
    case 'failed':
      return { state: 'error', code: 'unreachable', ...why, checkedAt }
  }
}
