import type { Examples } from '../../sdk/contract.js'
import type { InventoryBackend, InventoryCalls, InventoryList, InventoryListed } from './contract.js'

const HOST: InventoryBackend = {
  kind: 'backend',
  provider: 'host',
  name: 'home',
  values: {
    address: 'home.example.org',
    user: 'deploy',
    hostKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGRlcGxveW1lbnQtZXhhbXBsZS1vZi1hLWhvc3Qta2V5',
  },
}
const LISTED: InventoryListed = {
  ...HOST,
  secrets: [{ option: 'sshKey', key: 'HOST_SSH_KEY_HOME', set: true }],
  usedBy: ['shop'],
}
const SHOP: InventoryListed = {
  kind: 'app',
  name: 'shop',
  values: { source: 'shop', port: 8080 },
  on: 'home',
  expose: 'home',
  secrets: [{ option: 'environment', key: 'APP_ENV_SHOP', set: false }],
  usedBy: [],
}
const LIST: InventoryList = {
  ready: true,
  file: 'intent/deploy.config.json',
  commit: '5c1e'.repeat(10),
  dirty: false,
  entries: [LISTED, SHOP],
}

/** One use of each call. */
export const examples = (): Examples<InventoryCalls> => ({
  'GET /inventory': { output: LIST },
  'GET /inventory/kinds': {
    output: {
      kinds: [
        {
          kind: 'service',
          id: 'redis',
          label: 'Redis',
          description: 'A Redis server whose data outlives its container.',
          exposes: false,
          options: [{ key: 'publish', label: 'Port on the machine', type: 'number', required: false, secret: false }],
        },
      ],
      version: '0.1.0',
    },
  },
  'POST /inventory': { input: HOST, output: { ...LIST, entries: [{ ...LISTED, usedBy: [] }] } },
  'DELETE /inventory/{name}': {
    input: { name: 'shop' },
    output: { ...LIST, entries: [{ ...LISTED, usedBy: [] }] },
  },
})
