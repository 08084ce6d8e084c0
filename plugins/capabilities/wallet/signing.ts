import type { Address, Hex } from 'viem'
import type { SigningDomain } from './chain.js'

/** A transfer that the payee may collect once until it expires (ERC-3009). */
export interface SignedTransfer {
  readonly authorization: {
    readonly from: Address
    readonly to: Address
    readonly value: string
    readonly validAfter: string
    readonly validBefore: string
    readonly nonce: Hex
  }
  readonly signature: Hex
}

const TYPES = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

/** Few sandboxes pay, so the library is loaded on demand. */
const library = () => import('viem/accounts')

/** A new private key. */
export const newPrivateKey = async (): Promise<Hex> => (await library()).generatePrivateKey()

/** The address of a private key; undefined: it is none. */
export const addressOfKey = async (key: string): Promise<Address | undefined> => {
  const text = key.trim().startsWith('0x') ? key.trim() : `0x${key.trim()}`
  if (!/^0x[0-9a-fA-F]{64}$/.test(text)) return undefined
  try {
    return (await library()).privateKeyToAddress(text as Hex)
  } catch {
    return undefined
  }
}

/** Signs one transfer of a currency. */
export const signTransfer = async (
  key: string,
  domain: SigningDomain,
  {
    to,
    units,
    until,
    nonce,
  }: { readonly to: Address; readonly units: bigint; readonly until: number; readonly nonce: Hex },
): Promise<SignedTransfer> => {
  const text = key.trim()
  const account = (await library()).privateKeyToAccount((text.startsWith('0x') ? text : `0x${text}`) as Hex)
  const signature = await account.signTypedData({
    domain: { ...domain },
    types: TYPES,
    primaryType: 'TransferWithAuthorization',
    message: { from: account.address, to, value: units, validAfter: 0n, validBefore: BigInt(until), nonce },
  })
  return {
    authorization: {
      ...{ from: account.address, to, value: units.toString(), validAfter: '0', validBefore: String(until) },
      nonce,
    },
    signature,
  }
}
