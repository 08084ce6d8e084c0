import { lineArt } from '../../../sdk/node/line-art.js'
import { DEPLOY_KINDS, type InventoryKind, type InventoryOption } from '../../../sdk/node/deploy/kinds.js'
import type { CardField, StoredKind } from '../../capabilities/contract.js'

const CATEGORY = { id: 'deployment', label: 'Deployment', hint: 'Machines, and what runs on them.' }
const kept = { forget: 'inventory.forget', rename: 'inventory.rename' }
const stays = { ...kept, release: 'inventory.keep' }

const fieldOf = (
  { key, label, required, values, description, default: usual }: InventoryOption,
  when: string,
): CardField => ({
  key,
  label,
  ...(!required && { optional: true }),
  ...(description !== undefined && { hint: description }),
  ...(values && { options: values.map(value => ({ value, label: value })) }),
  ...(usual !== undefined && { placeholder: String(usual) }),
  when,
})

/** The fields of options that several declared things may share, each shown for those that have it. */
const optionFields = (kinds: readonly InventoryKind[]): CardField[] => {
  const known = new Map<string, { readonly option: InventoryOption; readonly ids: string[] }>()
  for (const { id = '', options } of kinds)
    for (const option of options.filter(({ secret }) => !secret)) {
      const found = known.get(option.key)
      if (found) found.ids.push(id)
      else known.set(option.key, { option, ids: [id] })
    }
  return [...known.values()].map(({ option, ids }) => ({
    ...fieldOf({ ...option, required: option.required && ids.length === 1 }, `service in [${ids.join(', ')}]`),
  }))
}

const SERVICES = DEPLOY_KINDS.filter(({ kind }) => kind === 'service')
const PROVIDERS = DEPLOY_KINDS.filter(({ kind }) => kind === 'backend')

/** The kinds of connections that this group serves. */
export const INVENTORY_KINDS: StoredKind[] = [
  {
    storedBy: 'capabilities',
    kind: 'devops',
    card: {
      name: 'DevOps',
      category: CATEGORY.id,
      description: 'The repositories in which the inventory of machines, services and apps is kept.',
      hint: 'It makes the repositories intent and desired-state. They stay.',
      art: lineArt('M4 5h16v5H4z', 'M4 14h16v5H4z', 'M12 10v4', 'M7 7.5h0', 'M7 16.5h0'),
      guide: {
        steps: [
          'Connect it: the repositories intent and desired-state are made in the workspace.',
          'Add machines, services and apps on the page Inventory; each change is a commit.',
        ],
      },
      fields: [],
      singleton: true,
    },
    category: CATEGORY,
    calls: {
      check: 'inventory.devops.check',
      apply: 'inventory.devops.apply',
      status: 'inventory.devops.status',
      ...stays,
    },
  },
  {
    storedBy: 'capabilities',
    kind: 'monorepo',
    card: {
      name: 'Monorepo',
      category: CATEGORY.id,
      description: 'A new repository for packages and apps that share their dependencies.',
      hint: 'Its id is the name of the repository, which stays.',
      art: lineArt('M4 4h7v7H4z', 'M13 4h7v7h-7z', 'M4 13h7v7H4z', 'M13 13h7v7h-7z'),
      guide: {
        steps: [
          'Choose an id: the repository gets it as its name, and its folder too.',
          'Connect it, then add apps to the repository on the page Projects.',
        ],
      },
      fields: [],
    },
    category: CATEGORY,
    calls: {
      check: 'inventory.monorepo.check',
      apply: 'inventory.monorepo.apply',
      status: 'inventory.monorepo.status',
      ...stays,
    },
  },
  {
    storedBy: 'capabilities',
    kind: 'integration',
    card: {
      name: 'Machine',
      category: CATEGORY.id,
      description: 'A machine of the inventory, on which services and apps can run.',
      hint: 'Its id is the name of the entry: letters, digits and _.',
      art: lineArt('M3 5h18v11H3z', 'M8 20h8', 'M12 16v4', 'M7 9l2 2-2 2'),
      guide: {
        steps: [
          'Make an account on the machine that may run containers, and a key for it without a passphrase.',
          'Read the host key of the machine with ssh-keyscan, and compare it with what the machine itself prints.',
          'Connect it, then store the private key among the secrets, under the name that its state says.',
        ],
      },
      fields: [
        {
          key: 'provider',
          label: 'What it is',
          options: PROVIDERS.map(({ id = '', label }) => ({ value: id, label })),
        },
        ...PROVIDERS.flatMap(({ id, options }) =>
          options.filter(({ secret }) => !secret).map(option => fieldOf(option, `provider in [${id}]`)),
        ),
      ],
      requires: ['devops'],
    },
    category: CATEGORY,
    calls: {
      check: 'inventory.integration.check',
      apply: 'inventory.integration.apply',
      status: 'inventory.integration.status',
      release: 'inventory.integration.release',
      ...kept,
    },
  },
  {
    storedBy: 'capabilities',
    kind: 'service',
    card: {
      name: 'Service',
      category: CATEGORY.id,
      description: 'A service such as a database, which runs on a machine of the inventory.',
      hint: 'Its id is the name of the entry: letters, digits and _. Connecting it applies the whole deployment.',
      art: lineArt('M5 7c0-2 14-2 14 0v10c0 2-14 2-14 0z', 'M5 7c0 2 14 2 14 0', 'M5 12c0 2 14 2 14 0'),
      guide: {
        steps: [
          'Connect a machine first, and store its SSH key among the secrets.',
          'Store the password of the service among the secrets, as SERVICE_PASSWORD_ and its id in capitals.',
          'Connect it: its entry is added, and the deployment is applied.',
        ],
      },
      fields: [
        {
          key: 'service',
          label: 'What it is',
          options: SERVICES.map(({ id = '', label }) => ({ value: id, label })),
        },
        { key: 'on', label: 'Machine', hint: 'The name of a machine of the inventory.' },
        {
          key: 'expose',
          label: 'Reachable through',
          optional: true,
          hint: 'The machine again where others should reach it; empty: only the machine itself does.',
        },
        ...optionFields(SERVICES),
      ],
      requires: ['devops'],
    },
    category: CATEGORY,
    calls: {
      check: 'inventory.service.check',
      apply: 'inventory.service.apply',
      status: 'inventory.service.status',
      release: 'inventory.service.release',
      ...kept,
    },
  },
]
