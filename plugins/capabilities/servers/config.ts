import { refuse } from '../../../sdk/index.js'
import { commandWords, variablesOf } from '../agents/words.js'
import type { ShownConfig } from '../records/contract.js'
import type { OpenEntry } from '../records/kinds.js'

/** A server that is a program. */
export interface StdioServer {
  readonly kind: 'stdio'
  readonly program: string
  readonly args: readonly string[]
  readonly env: { readonly [name: string]: string }
  readonly cwd: string
}
/** A server at an address. */
export interface HttpServer {
  readonly kind: 'http'
  readonly url: URL
  /** With the token, where there is one. */
  readonly headers: { readonly [name: string]: string }
}

const DEFAULT_TIMEOUT_MS = 60_000
const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/
/** Headers that the connection itself sets. */
const OWN_HEADERS = /^(?:host|content-length|content-type|connection|transfer-encoding|accept|mcp-.*|last-event-id)$/i

const text = (config: ShownConfig, field: string): string => String(config[field] ?? '')

const linesOf = (value: string): string[] => value.split(/\r?\n/).filter(line => line.trim() !== '')

/** The headers of a field with `Name: value` lines; a value is in no message. */
export const serverHeaders = (field: string, value = ''): { [name: string]: string } =>
  Object.fromEntries(
    linesOf(value).map((line, at) => {
      const [, name = '', content = ''] = HEADER.exec(line) ?? []
      if (!name || /[\0\x7f]/.test(content))
        return refuse('invalid', `config.${field}: expected Name: value in line ${at + 1}, found no such pair`)
      if (OWN_HEADERS.test(name)) return refuse('invalid', `config.${field}: ${name} is set by the connection itself`)
      return [name.toLowerCase(), content] as const
    }),
  )

/** The server of a connection, or a refusal that names the field that is wrong. */
export const toolServerIn = ({ config, secrets }: OpenEntry): StdioServer | HttpServer => {
  if (text(config, 'transport') === 'stdio') {
    for (const field of ['url', 'auth', 'scopes', 'clientId'])
      if (config[field] !== undefined) refuse('invalid', `config.${field}: expected nothing for a server over stdio`)
    const [program, ...more] = commandWords('command', text(config, 'command'))
    const args = [...more, ...linesOf(text(config, 'args'))]
    return { kind: 'stdio', program, args, env: variablesOf('env', secrets.env), cwd: text(config, 'cwd') }
  }
  for (const field of ['command', 'args', 'cwd'])
    if (config[field] !== undefined) refuse('invalid', `config.${field}: expected nothing for a server over http`)
  if (secrets.env !== undefined) refuse('invalid', 'config.env: expected nothing for a server over http')
  const headers = serverHeaders('headers', secrets.headers)
  const { token } = secrets
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
    refuse('invalid', 'config.token: expected signs without blanks')
  if (text(config, 'auth') === 'token' && token === undefined && headers.authorization === undefined)
    refuse('invalid', 'config.token: expected a token')
  return {
    kind: 'http',
    url: addressOf(text(config, 'url')),
    headers: { ...headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
  }
}

const addressOf = (value: string): URL => {
  if (value === '') refuse('invalid', 'config.url: expected the address of the server, found nothing')
  const shown = JSON.stringify(value.slice(0, 200))
  const url = URL.parse(value) ?? refuse('invalid', `config.url: expected an http or https address, found ${shown}`)
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    refuse('invalid', `config.url: expected an http or https address, found one of ${url.protocol.slice(0, 40)}`)
  if (url.username || url.password)
    refuse('invalid', 'config.url: expected an address without a name and password in it; give them as headers')
  return url
}

/** Whether a person signs in to the server of a connection, where it asks for that. */
export const signsIn = (entry: OpenEntry): boolean => {
  const server = toolServerIn(entry)
  const { auth } = entry.config
  return server.kind === 'http' && server.headers.authorization === undefined && auth !== 'none' && auth !== 'token'
}

/** How long a call of a server may be silent. */
export const timeoutOf = (config: ShownConfig): number => Number(config.timeoutMs ?? DEFAULT_TIMEOUT_MS)

/** Whether a call of a tool asks a person first. */
export const approves = (config: ShownConfig, readOnly: boolean): boolean =>
  config.approve === 'always' || (config.approve !== 'never' && !readOnly)

const patternOf = (glob: string): RegExp =>
  new RegExp(
    `^${glob
      .trim()
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replaceAll('*', '.*')
      .replaceAll('?', '.')}$`,
    's',
  )

/** Why a tool is not offered; undefined: it is. */
export const withheld = (config: ShownConfig, name: string): string | undefined => {
  const fits = (field: string) => linesOf(text(config, field)).find(glob => patternOf(glob).test(name))
  const denied = fits('denyTools')
  if (denied !== undefined) return `denyTools names it with ${denied.trim()}`
  if (linesOf(text(config, 'allowTools')).length === 0 || fits('allowTools') !== undefined) return undefined
  return 'allowTools does not name it'
}
