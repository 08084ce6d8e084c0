import { refuse } from '../../sdk/index.js'
import { git } from '../../sdk/node/programs/git.js'
import type { StoreConfig, StoreOption, StoreState } from './contract.js'
import type { SecretStore } from './secret-store.js'
import type { VaultKeys } from './vault/vault-keys.js'

const LEAST_PASSPHRASE = 12
const MOST_PASSPHRASE = 1024

/** Where secrets are, and what else this machine offers. */
export const storeState = async (store: SecretStore, keys: VaultKeys, workspace: string): Promise<StoreState> => {
  const [known, choices] = await Promise.all([store.known(), choicesOf(keys, workspace)])
  const { head, locked } = store
  return {
    configured: head !== undefined,
    ...(head && {
      kind: head.dotenv === undefined ? ('vault' as const) : ('dotenv' as const),
      ...(head.dotenv === undefined ? { unlock: head.unlock } : { path: head.dotenv }),
    }),
    locked: locked !== undefined,
    ...(locked !== undefined && { reason: locked }),
    keys: known.filter(({ kind }) => kind !== 'field').length,
    choices,
  }
}

const choicesOf = async (keys: VaultKeys, workspace: string): Promise<StoreOption[]> => {
  const noRing = await keys.missing.catch((error: Error) => error.message)
  const isRepository = await git(workspace, ['rev-parse', '--git-dir']).then(
    () => true,
    () => false,
  )
  return [
    { kind: 'vault', unlock: 'file', available: true },
    { kind: 'vault', unlock: 'passphrase', available: true },
    {
      kind: 'vault',
      unlock: 'keyring',
      available: noRing === undefined,
      ...(noRing !== undefined && { reason: noRing }),
    },
    {
      kind: 'dotenv',
      available: isRepository,
      ...(!isRepository && { reason: 'the workspace is no git repository, so git ignores no file of it' }),
    },
  ]
}

/** Refuses a choice whose passphrase is missing or not asked for; the passphrase is in no message. */
export const checkChoice = (config: StoreConfig): void => {
  if (config.kind !== 'vault') return
  const { unlock, passphrase } = config
  const wrong = (expected: string) =>
    refuse('invalid', `passphrase: expected ${expected}`, { errors: [{ path: 'passphrase', expected }] })
  if (unlock !== 'passphrase') {
    if (passphrase !== undefined) wrong(`none with unlock ${unlock}`)
    return
  }
  const length = passphrase?.length ?? 0
  if (length < LEAST_PASSPHRASE || length > MOST_PASSPHRASE)
    wrong(`${LEAST_PASSPHRASE} to ${MOST_PASSPHRASE} characters, found ${length || 'none'}`)
}

/** Where values lie, in words. */
export const storePlace = ({ head }: SecretStore): string =>
  head === undefined ? 'nowhere yet' : head.dotenv === undefined ? "the sandbox's encrypted store" : head.dotenv
