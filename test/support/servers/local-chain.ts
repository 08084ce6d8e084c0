import { createCustomCommon, Hardfork, Mainnet } from '@ethereumjs/common'
import { createEVM, type EVM, type EVMResult } from '@ethereumjs/evm'
import { bytesToHex, createAddressFromString, hexToBytes, type PrefixedHexString } from '@ethereumjs/util'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { encodeFunctionData, getAddress, parseAbi, type Address, type Hex } from 'viem'
import { root } from '../daemon.js'

/** The number of the chain. */
export const CHAIN_ID = 31_337
const OPERATOR: Address = '0x00000000000000000000000000000000000000a1'
const GAS = 5_000_000n
const ABI = parseAbi(['function mint(address to, uint256 value)'])

interface Transaction {
  readonly from?: Address
  readonly to?: Address
  readonly data?: Hex
}

/** A chain of a test's own: a real virtual machine with one contract of dollars, and its endpoint. */
export interface LocalChain {
  readonly url: string
  /** The contract of the dollars. */
  readonly dollars: Address
  /** Gives millionths of a dollar to an address. */
  mint(to: string, units: bigint): Promise<void>
  /** Asks the endpoint. */
  ask<T>(method: string, ...params: unknown[]): Promise<T>
  /** The millionths of a dollar of an address. */
  balance(of: string): Promise<bigint>
  /** Transactions that changed the chain, without those of the test itself. */
  readonly sent: Hex[]
  /** Methods that its endpoint answers with an error. */
  readonly failing: Set<string>
  stop(): Promise<void>
}

const block = (now: number) => ({
  header: {
    number: 1n,
    coinbase: createAddressFromString(OPERATOR),
    timestamp: BigInt(Math.floor(now / 1000)),
    difficulty: 0n,
    prevRandao: new Uint8Array(32),
    gasLimit: 30_000_000n,
    baseFeePerGas: 0n,
    getBlobGasPrice: () => 1n,
  },
})

const run = (evm: EVM, { from = OPERATOR, to, data = '0x' }: Transaction, now = Date.now()): Promise<EVMResult> =>
  evm.runCall({
    caller: createAddressFromString(from),
    origin: createAddressFromString(from),
    ...(to && { to: createAddressFromString(to) }),
    data: hexToBytes(data),
    gasLimit: GAS,
    // The machine reads the header alone.
    block: block(now) as never,
  })

/** Starts a chain, whose latest block was always made just now. */
export const localChain = async (t: Pick<Test, 'teardown'>, clock: () => number = Date.now): Promise<LocalChain> => {
  const common = createCustomCommon({ chainId: CHAIN_ID, name: 'local' }, Mainnet, { hardfork: Hardfork.Paris })
  const evm = await createEVM({ common })
  const { bytecode } = JSON.parse(readFileSync(join(root, '..', 'test/fixtures/chain/dollars.json'), 'utf8')) as {
    bytecode: Hex
  }
  const dollars = getAddress((await run(evm, { data: bytecode })).createdAddress!.toString())
  const receipts = new Map<string, object>()
  const sent: Hex[] = []
  const failing = new Set<string>()
  let last: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const next = last.then(work, work)
    last = next
    return next
  }

  const send = async (transaction: Transaction): Promise<Hex> => {
    const { execResult } = await run(evm, transaction, clock())
    const hash: Hex = `0x${(receipts.size + 1).toString(16).padStart(64, '0')}`
    const status = execResult.exceptionError ? '0x0' : '0x1'
    receipts.set(hash, { transactionHash: hash, status, blockNumber: '0x1', logs: [] })
    return hash
  }
  const call = async (transaction: Transaction): Promise<PrefixedHexString> => {
    await evm.journal.checkpoint()
    try {
      const { execResult } = await run(evm, transaction, clock())
      if (execResult.exceptionError) throw new Error(`execution reverted: ${execResult.exceptionError.error}`)
      return bytesToHex(execResult.returnValue)
    } finally {
      await evm.journal.revert()
    }
  }
  const answer = async (method: string, params: readonly unknown[]): Promise<unknown> => {
    if (failing.has(method)) throw new Error('request rate exceeded')
    switch (method) {
      case 'eth_getBlockByNumber':
        return { number: '0x1', timestamp: `0x${Math.floor(clock() / 1000).toString(16)}` }
      case 'eth_chainId':
        return `0x${CHAIN_ID.toString(16)}`
      case 'eth_call':
        return call(params[0] as Transaction)
      case 'eth_getCode':
        return bytesToHex(await evm.stateManager.getCode(createAddressFromString(params[0] as string)))
      case 'eth_sendTransaction': {
        const hash = await send(params[0] as Transaction)
        sent.push(hash)
        return hash
      }
      case 'eth_getTransactionReceipt':
        return receipts.get(params[0] as string) ?? null
      default:
        throw new Error(`the method ${method} does not exist`)
    }
  }
  const server = createServer((request, response) => {
    void bodyOf(request).then(async text => {
      const { id, method, params } = JSON.parse(text) as { id: number; method: string; params: unknown[] }
      const said = await inTurn(() => answer(method, params)).then(
        result => ({ result }),
        (error: Error) => ({ error: { code: -32_000, message: error.message } }),
      )
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ jsonrpc: '2.0', id, ...said }))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const stop = () =>
    new Promise<void>(resolve => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  t.teardown(stop)
  const ask = async <T>(method: string, ...params: unknown[]): Promise<T> =>
    (await inTurn(() => answer(method, params))) as T
  return {
    url,
    dollars,
    sent,
    failing,
    stop,
    ask,
    mint: async (to, units) => {
      const data = encodeFunctionData({ abi: ABI, args: [to as Address, units] })
      await inTurn(() => send({ to: dollars, data }))
    },
    balance: async of => {
      const data = encodeFunctionData({
        abi: parseAbi(['function balanceOf(address) view returns (uint256)']),
        args: [of as Address],
      })
      return BigInt(await ask<Hex>('eth_call', { to: dollars, data }))
    },
  }
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  const pieces: Buffer[] = []
  for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece)
  return Buffer.concat(pieces).toString('utf8')
}
