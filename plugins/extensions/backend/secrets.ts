import { createHmac } from 'node:crypto'
import { refuse, type Host } from '../../../sdk/index.js'
import { connectionFor } from '../connections/connections.js'
import type { RunnableExtension } from '../runtime.js'
import { bytesGiven } from '../../../sdk/node/extension/bytes.js'
import { deny } from '../../../sdk/node/extension/denied.js'
import type { ManifestEntries } from '../../../sdk/node/extension/entries.js'
import type { HostHandlers } from './operations.js'

/** The dependencies of reading the secrets of one backend. */
export interface SecretDeps {
  readonly host: Pick<Host, 'call' | 'serves'>
  readonly extension: RunnableExtension
  readonly entries: ManifestEntries
}

/** A secret field of a connection. */
const FIELD = /^([a-zA-Z0-9][\w-]{0,59})\/[\w-]+$/
const OWN = /^ext\/([^/]+)\/([^/]+)$/

/** The stored key of a secret setting of the extension. */
const ownSetting = ({ id, manifest }: RunnableExtension, name: string): string | undefined => {
  const [, owner, key] = OWN.exec(name) ?? []
  const declared = manifest.contributes?.settings?.some(setting => setting.key === key && setting.secret === true)
  return owner === id && declared ? key : undefined
}

/** Refuses a secret that the extension may not refer to. */
export const assertSecret = ({ extension, entries }: Pick<SecretDeps, 'extension' | 'entries'>, name: string): void => {
  if (ownSetting(extension, name) !== undefined || entries.secret(name) !== undefined) return
  if (!FIELD.test(name) || entries.connections.size === 0) deny(`secret:${name}`)
}

const valueOf = async ({ host, extension, entries }: SecretDeps, name: string): Promise<string> => {
  const absent = (): never => refuse('not-found', `no secret named ${name} is stored`)
  if (!(await host.serves('secrets.resolve'))) return absent()
  if (ownSetting(extension, name) !== undefined) return (await host.call('secrets.get', { name })).value ?? absent()
  const [, connection] = FIELD.exec(name) ?? []
  if (connection !== undefined) await connectionFor(host, connection, entries.connections)
  const reference = `{{secret:${name}}}`
  const { text, refused } = await host.call('secrets.resolve', {
    text: reference,
    lane: 'code',
    detail: `extension ${extension.id}`.slice(0, 80),
  })
  if (refused !== undefined) return refuse('forbidden', refused)
  return text === undefined || text === reference ? absent() : text
}

/** The operations on secrets. No value enters the process but that of an own setting. */
export const secretOperations = (
  deps: SecretDeps,
): Pick<HostHandlers, `secrets.${'ref' | 'has' | 'hmac' | 'value'}`> => ({
  'secrets.ref': ({ name }) => {
    assertSecret(deps, name)
    return { reference: `{{secret:${name}}}` }
  },
  'secrets.has': async ({ name }) => {
    assertSecret(deps, name)
    const found = await valueOf(deps, name).catch(() => undefined)
    return { has: found !== undefined }
  },
  'secrets.hmac': async ({ name, algorithm, data }) => {
    assertSecret(deps, name)
    return {
      bytes: createHmac(algorithm, await valueOf(deps, name))
        .update(bytesGiven('data', data))
        .digest(),
    }
  },
  'secrets.value': async ({ key }) => {
    const name = `ext/${deps.extension.id}/${key}`
    if (ownSetting(deps.extension, name) === undefined)
      return refuse('not-found', `the manifest declares no secret setting ${key}`)
    return { value: await valueOf(deps, name) }
  },
})

const REFERENCE = /\{\{secret:([^{}]{1,200})\}\}/g

/** Texts with the values of the secrets they refer to, and these values for masking. */
export const filledTexts = async (
  deps: SecretDeps,
  texts: readonly string[],
): Promise<{ texts: string[]; values: { name: string; value: string }[] }> => {
  const names = [...new Set(texts.flatMap(text => [...text.matchAll(REFERENCE)].map(([, name]) => name!)))]
  for (const name of names) assertSecret(deps, name)
  const values = await Promise.all(names.map(async name => ({ name, value: await valueOf(deps, name) })))
  const byName = new Map(values.map(({ name, value }) => [name, value]))
  return { texts: texts.map(text => text.replace(REFERENCE, (_, name: string) => byName.get(name)!)), values }
}
