import {
  decodeFunctionResult,
  domainSeparator,
  encodeFunctionData,
  getAddress,
  isAddress,
  type Abi,
  type Address,
  type Hex,
} from 'viem'
import { generatePrivateKey, privateKeyToAccount, privateKeyToAddress } from 'viem/accounts'
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

/** An address with its checksum; undefined: it is none, or its checksum is wrong, so that a digit may be too. */
export const checkedAddress = (text: string): Address | undefined => {
  const lower = text.toLowerCase()
  const plain = text === lower || text.slice(2) === text.slice(2).toUpperCase()
  return isAddress(lower) && (plain || isAddress(text)) ? getAddress(lower) : undefined
}

/** A new private key. */
export const newPrivateKey = (): Hex => generatePrivateKey()

/** The address of a private key; undefined: it is none. */
export const addressOfKey = (key: string): Address | undefined => {
  const text = key.trim().startsWith('0x') ? key.trim() : `0x${key.trim()}`
  if (!/^0x[0-9a-fA-F]{64}$/.test(text)) return undefined
  try {
    return privateKeyToAddress(text as Hex)
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
  const account = privateKeyToAccount((text.startsWith('0x') ? text : `0x${text}`) as Hex)
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

/** The bytes that call a function of a contract. */
export const calledWith = (abi: Abi, args: readonly unknown[]): Hex => encodeFunctionData({ abi, args })

/** The value that a function of a contract answered; undefined: another form. */
export const answeredWith = (abi: Abi, data: Hex): unknown => {
  try {
    return decodeFunctionResult({ abi, data })
  } catch {
    return undefined
  }
}

/** The number that a contract knows the domain of its signatures by. */
export const separatorOf = (domain: SigningDomain): Hex => domainSeparator({ domain: { ...domain } })
