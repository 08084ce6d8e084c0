import { lineArt } from '../../../sdk/node/line-art.js'
import { DEPLOY_KINDS, type InventoryOption } from '../../../sdk/node/deploy/kinds.js'
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
]
