import { refuse } from '../../../sdk/index.js'
import { normalHost } from '../../../sdk/node/network/host-form.js'
import type { ShownConfig } from '../records/contract.js'
import { microsOf } from './amounts.js'

/** What a wallet may pay, in millionths of a dollar. */
export interface WalletLimits {
  readonly perPayment: bigint
  readonly perDay: bigint
  /** Payments below it need no question. */
  readonly unasked: bigint
}

const DEFAULTS = { perPaymentMaxUsd: '1', dailyCapUsd: '5', autoApproveUnderUsd: '0' }
const FORM = /^[0-9]{1,9}(?:\.[0-9]{1,6})?$/
const PATTERN = /^(?:0x[0-9a-fA-F]{40}|[a-z0-9*](?:[a-z0-9.*-]*[a-z0-9*])?(?::[0-9]{1,5})?)$/i
const MOST_LINES = 200
const USUAL_PORTS: { readonly [protocol: string]: string } = { 'https:': '443', 'http:': '80' }

const limit = (config: ShownConfig, field: keyof typeof DEFAULTS): bigint => {
  const text = String(config[field] ?? DEFAULTS[field])
  if (!FORM.test(text))
    refuse('invalid', `config.${field}: expected dollars such as 0.25, found ${JSON.stringify(text.slice(0, 40))}`)
  return microsOf(text)
}

/** The limits of a wallet; without any 1 dollar a payment, 5 a day, and a question for each. */
export const walletLimits = (config: ShownConfig): WalletLimits => {
  const limits = {
    perPayment: limit(config, 'perPaymentMaxUsd'),
    perDay: limit(config, 'dailyCapUsd'),
    unasked: limit(config, 'autoApproveUnderUsd'),
  }
  for (const field of ['allow', 'deny']) linesOf(config, field)
  return limits
}

const linesOf = (config: ShownConfig, field: string): string[] => {
  const lines = String(config[field] ?? '')
    .split('\n')
    .map(line => line.trim().toLowerCase())
    .filter(line => line !== '')
  const wrong = lines.find(line => !PATTERN.test(line))
  if (wrong !== undefined)
    refuse(
      'invalid',
      `config.${field}: expected hosts such as *.example.org, or addresses, found ${wrong.slice(0, 80)}`,
    )
  if (lines.length > MOST_LINES)
    refuse('invalid', `config.${field}: expected at most ${MOST_LINES} lines, found ${lines.length}`)
  return lines
}

const fits = (line: string, url: URL, payTo: string): boolean => {
  if (line.startsWith('0x')) return line === payTo.toLowerCase()
  const words = line.split('*').map(word => word.replaceAll(/[.\\+?^${}()|[\]]/g, '\\$&'))
  const pattern = new RegExp(`^${words.join('.*')}$`)
  const host = normalHost(url.hostname) ?? url.hostname
  return pattern.test(host) || pattern.test(`${host}:${url.port || USUAL_PORTS[url.protocol]}`)
}

/** Refuses a payment that the lists of a wallet forbid; `deny` wins. */
export const assertListed = (config: ShownConfig, wallet: string, url: URL, payTo: string): void => {
  const denied = linesOf(config, 'deny').find(line => fits(line, url, payTo))
  if (denied !== undefined) refuse('forbidden', `the wallet ${wallet} pays nothing to ${denied}: its list deny says so`)
  const allowed = linesOf(config, 'allow')
  if (allowed.length > 0 && !allowed.some(line => fits(line, url, payTo)))
    refuse('forbidden', `the wallet ${wallet} pays neither ${url.host} nor ${payTo}: its list allow names others`)
}
