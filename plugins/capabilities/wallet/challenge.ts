import { refuse } from '../../../sdk/index.js'

/** One way to pay that a server offers. */
export interface PaymentOption {
  readonly version: 1 | 2
  readonly network: string
  readonly asset: string
  readonly units: bigint
  readonly payTo: string
  readonly seconds: number
  readonly description?: string
  /** What the answer repeats of it, as JSON. */
  readonly accepted: string
}

const ADDRESS = /^0x[0-9a-fA-F]{40}$/
const MOST_OPTIONS = 50
const MOST_TEXT = 500
const MOST_BYTES = 64 * 1024
const MOST_NETWORK = 60
const MOST_OPTION = 4096

const isObject = (value: unknown): value is { readonly [field: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const parsed = (text: string): { readonly [field: string]: unknown } | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** A header that holds JSON in base64. */
export const jsonInHeader = (header: string): { readonly [field: string]: unknown } | undefined =>
  header.length > MOST_BYTES ? undefined : parsed(Buffer.from(header, 'base64').toString('utf8'))

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value.slice(0, MOST_TEXT).toWellFormed() : undefined

/** The ways to pay that a server offers: in a header (version 2 of x402), or as its answer (version 1). */
export const paymentOptions = (required: string | undefined, body: string): PaymentOption[] => {
  const found = required === undefined ? parsed(body) : jsonInHeader(required)
  const version = found?.x402Version
  if (!found || (version !== 1 && version !== 2) || !Array.isArray(found.accepts))
    return refuse(
      'unprocessable',
      'the server asks for a payment in no form that is known here: expected one of x402, version 1 or 2',
    )
  const about = isObject(found.resource) ? text(found.resource.description) : undefined
  return found.accepts.slice(0, MOST_OPTIONS).flatMap((one: unknown) => optionOf(version, one, about) ?? [])
}

/** An option as JSON; undefined: it is nested too deep. */
const written = (one: object): string | undefined => {
  try {
    return JSON.stringify(one)
  } catch {
    return undefined
  }
}

const optionOf = (version: 1 | 2, one: unknown, about: string | undefined): PaymentOption | undefined => {
  if (!isObject(one) || one.scheme !== 'exact') return undefined
  const { network, asset, payTo, maxTimeoutSeconds: seconds, extra } = one
  const units = version === 2 ? one.amount : one.maxAmountRequired
  if (typeof network !== 'string' || network.length > MOST_NETWORK) return undefined
  if (typeof units !== 'string' || !/^[0-9]{1,40}$/.test(units)) return undefined
  if (typeof asset !== 'string' || typeof payTo !== 'string' || !ADDRESS.test(asset) || !ADDRESS.test(payTo))
    return undefined
  const more = isObject(extra) ? extra : {}
  // Another way to transfer asks for another signature, with which more could be taken.
  if (more.assetTransferMethod !== undefined && more.assetTransferMethod !== 'eip3009') return undefined
  const description = about ?? text(one.description)
  // Version 1 repeats no option, which may describe the whole server.
  const accepted = written(version === 2 ? one : { network, extra: { version: text(more.version) } })
  if (accepted === undefined || accepted.length > MOST_OPTION) return undefined
  return {
    ...{ version, network, asset, payTo, units: BigInt(units) },
    seconds: typeof seconds === 'number' && seconds >= 1 ? Math.floor(seconds) : 60,
    ...(description !== undefined && { description }),
    accepted,
  }
}
