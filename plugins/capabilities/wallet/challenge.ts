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
  /** As the server sent it, as JSON. */
  readonly accepted: string
  /** The name and version of the currency's signatures, as the server says them. */
  readonly named: { readonly name?: string; readonly version?: string }
}

const ADDRESS = /^0x[0-9a-fA-F]{40}$/
const MOST_OPTIONS = 50
const MOST_TEXT = 500
const MOST_BYTES = 64 * 1024

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

const optionOf = (version: 1 | 2, one: unknown, about: string | undefined): PaymentOption | undefined => {
  if (!isObject(one) || one.scheme !== 'exact') return undefined
  const { network, asset, payTo, maxTimeoutSeconds: seconds, extra } = one
  const units = version === 2 ? one.amount : one.maxAmountRequired
  if (typeof network !== 'string' || typeof units !== 'string' || !/^[0-9]{1,40}$/.test(units)) return undefined
  if (typeof asset !== 'string' || typeof payTo !== 'string' || !ADDRESS.test(asset) || !ADDRESS.test(payTo))
    return undefined
  const more = isObject(extra) ? extra : {}
  // Another way to transfer asks for another signature, with which more could be taken.
  if (more.assetTransferMethod !== undefined && more.assetTransferMethod !== 'eip3009') return undefined
  const [name, signed] = [text(more.name), text(more.version)]
  const description = about ?? text(one.description)
  return {
    ...{ version, network, asset, payTo, units: BigInt(units) },
    seconds: typeof seconds === 'number' && seconds > 0 ? Math.floor(seconds) : 60,
    ...(description !== undefined && { description }),
    accepted: JSON.stringify(one),
    named: { ...(name !== undefined && { name }), ...(signed !== undefined && { version: signed }) },
  }
}
