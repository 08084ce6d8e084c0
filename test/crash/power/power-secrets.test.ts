import '../../support/power.js'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FileStore } from '../../../kernel/storage/files.js'
import type { StoreConfig } from '../../../plugins/secrets/contract.js'
import { set } from '../../../plugins/secrets/changes.js'
import { systemKeyring } from '../../../plugins/secrets/vault/keyring.js'
import { SecretStore } from '../../../plugins/secrets/secret-store.js'
import { VaultKeys } from '../../../plugins/secrets/vault/vault-keys.js'
import { cutEverywhere } from '../../support/cuts.js'
import { inGit } from '../../support/daemon.js'
import { canCut } from '../../support/power.js'

const options = { skip: canCut ? false : 'this system shows no descriptors as paths' }
const FILE: StoreConfig = { kind: 'vault', unlock: 'file' }
const DOTENV: StoreConfig = { kind: 'dotenv', path: '.env' }
const PASSPHRASE: StoreConfig = { kind: 'vault', unlock: 'passphrase', passphrase: 'correct horse battery' }

const storeIn = async (folder: string): Promise<SecretStore> => {
  const own = join(folder, 'secrets')
  const store = new SecretStore({
    folder: own,
    workspace: join(folder, 'work'),
    files: new FileStore(join(folder, 'files')),
    keys: new VaultKeys(
      own,
      systemKeyring(async () => undefined),
    ),
    changed: async () => {},
  })
  await store.start()
  return store
}

type State = { [key: string]: string } | 'none'

const stateOf = async (folder: string): Promise<State> => {
  const store = await storeIn(folder)
  if (!store.head) return 'none'
  if (store.locked !== undefined) await store.choose(PASSPHRASE)
  return Object.fromEntries((await store.content()).secrets.map(({ name, value }) => [name, value]).sort())
}

const cut = (moves: readonly StoreConfig[]) => async (t: Parameters<typeof cutEverywhere>[0]) =>
  cutEverywhere<State>(t, {
    first: 'none',
    left: path => path.includes('/.git'),
    before: folder => {
      mkdirSync(join(folder, 'work'))
      inGit(join(folder, 'work'), 'init', '-q')
      writeFileSync(join(folder, 'work/.gitignore'), '.env\n')
      mkdirSync(join(folder, 'secrets'))
      mkdirSync(join(folder, 'files'))
    },
    drive: async (folder, promised) => {
      const store = await storeIn(folder)
      const [first, ...others] = moves
      await promised.step({}, () => store.choose(first!))
      const put = (key: string, value: string) => store.change(content => set(content, { key, value }, 1))
      await promised.step({ A: 'one' }, () => put('A', 'one'))
      await promised.step({ A: 'one', B: 'two\n' }, () => put('B', 'two\n'))
      await promised.step({ A: 'three', B: 'two\n' }, () => put('A', 'three'))
      for (const move of others) await promised.step({ A: 'three', B: 'two\n' }, () => store.choose(move))
      await promised.step({ A: 'three', B: 'two\n', C: 'four' }, () => put('C', 'four'))
    },
    found: stateOf,
  })

t.setTimeout(300_000)
t.test('a power cut during writes into a vault, and a move into a .env file', options, cut([FILE, DOTENV]))
t.test('a power cut during writes into a .env file, and a move into a vault', options, cut([DOTENV, FILE]))
t.test('a power cut during a move from a key file to a passphrase', options, cut([FILE, PASSPHRASE]))
