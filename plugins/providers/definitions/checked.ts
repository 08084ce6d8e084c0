import { explain } from '../../../sdk/index.js'
import { isLoopbackHostname, isPrivateAddress } from '../../../sdk/node/models/outgoing.js'
import { RESERVED_IDS } from '../reserved-ids.js'
import { parseDefinition, type DefinedAuth, type ProviderDefinition } from './contract.js'

/** What each way to sign in needs, beside the client id, which a deployment may have to get from the provider. */
const NEEDED: { readonly [flow: string]: readonly (keyof DefinedAuth)[] } = {
  redirect: ['authorizeUrl', 'tokenUrl'],
  code: ['authorizeUrl', 'tokenUrl'],
  device: ['deviceUrl', 'tokenUrl'],
  key: [],
}

/**
 * The definition of a file.
 *
 * @throws Error with a sentence that says what is wrong with it.
 */
export const checkedDefinition = (file: string, text: string): ProviderDefinition => {
  const parsed = parsedDefinition(text)
  const { id, auth, baseUrl, limits } = parsed
  if (file !== `${id}.json`) throw new Error(`expected the id ${file.replace(/\.json$/, '')}, as the file, found ${id}`)
  if (RESERVED_IDS.has(id)) throw new Error(`the id ${id} is reserved: choose another`)
  const { authorizeUrl, tokenUrl, deviceUrl, revokeUrl, keyUrl } = auth
  const addresses = { baseUrl, authorizeUrl, tokenUrl, deviceUrl, revokeUrl, keyUrl, 'limits.url': limits?.url }
  for (const [field, address] of Object.entries(addresses))
    if (address !== undefined && !isSafe(address))
      throw new Error(`${field}: expected an https address, or http of this machine, found ${address.slice(0, 200)}`)
  for (const flow of auth.flows) {
    const missing = NEEDED[flow]!.find(field => !auth[field])
    if (missing) throw new Error(`auth.${missing}: expected for the sign-in ${flow}, found nothing`)
  }
  if (parsed.api !== undefined && (parsed.serving !== 'routed' || parsed.protocol !== 'openai'))
    throw new Error('api: expected where serving is routed and protocol is openai alone')
  const other = auth.grants === 'key' ? auth.flows.find(flow => flow !== 'key' && flow !== 'redirect') : undefined
  if (other !== undefined)
    throw new Error(`auth.flows: expected redirect or key where auth.grants is key, found ${other}`)
  if (auth.grants === 'key' && auth.redirectUri !== undefined && !comesBack(auth.redirectUri))
    throw new Error('auth.redirectUri: expected http of this machine where auth.grants is key')
  for (const { kind, percent, limit, remaining } of limits?.windows ?? [])
    if (percent === undefined ? !limit || !remaining : limit !== undefined || remaining !== undefined)
      throw new Error(`limits.windows: expected percent, or limit and remaining, for ${kind.slice(0, 80)}`)
  return parsed
}

const parsedDefinition = (text: string): ProviderDefinition => {
  let result: ReturnType<typeof parseDefinition>
  try {
    result = parseDefinition(text)
  } catch (error) {
    throw new Error(`expected JSON: ${(error as Error).message.slice(0, 120)}`)
  }
  if (result.success) return result.data
  const [first] = explain(result.errors, '$input')
  throw new Error(
    `${first?.path}: expected ${first?.expected}${first?.value === undefined ? '' : `, found ${first.value}`}`,
  )
}

const comesBack = (address: string): boolean => {
  const url = URL.parse(address)
  return url?.protocol === 'http:' && isLoopbackHostname(url.hostname)
}

const isSafe = (address: string): boolean => {
  const url = URL.parse(address)
  return url !== null && !url.username && !url.password && isPrivateAddress(url)
}
