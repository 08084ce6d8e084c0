import type { ServerProtocol } from './list-rows.js'

const VERSION = /\/v\d+[a-z0-9]*$/i
const TAILS = /\/(chat\/completions|completions|messages|models|responses|tags|chat|show|generate)$/i

const bare = (address: string): string => {
  const url = new URL(address)
  return (url.origin + url.pathname).replace(/\/+$/, '')
}

/** An address without user, query, trailing slash and version segment. */
export const rootAddress = (address: string, protocol: ServerProtocol): string => {
  const plain = bare(address)
  return protocol === 'ollama' ? plain.replace(VERSION, '').replace(/\/api$/i, '') : plain.replace(VERSION, '')
}

/**
 * Possible base addresses of a server's API, the likeliest first: with the given version segment, else the default one.
 */
export const apiAddresses = (address: string, protocol: ServerProtocol): [string, ...string[]] => {
  const root = rootAddress(address, protocol)
  if (protocol === 'ollama') return [`${root}/api`]
  if (protocol === 'anthropic') return [`${root}/v1`]
  const given = bare(address)
  return given === root || given === `${root}/v1` ? [`${root}/v1`, root] : [given, `${root}/v1`]
}

/** An address for display: without user and query. */
export const shownAddress = (address: string): string => (URL.canParse(address) ? bare(address) : '')

/** The base address, if a person copied the address of a single call. */
export const withoutCall = (address: string): string => bare(address).replace(TAILS, '')
