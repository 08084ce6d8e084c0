import { x402Facilitator } from '@x402/core/facilitator'
import { x402HTTPResourceServer, x402ResourceServer, type FacilitatorClient } from '@x402/core/server'
import { registerExactEvmScheme } from '@x402/evm/exact/facilitator'
import { ExactEvmScheme } from '@x402/evm/exact/server'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { decodeFunctionResult, encodeFunctionData, verifyTypedData, type Abi, type Address, type Hex } from 'viem'
import { CHAIN_ID, type LocalChain } from './local-chain.js'

/** Who is paid. */
export const SELLER: Address = '0x00000000000000000000000000000000000000b2'
const COLLECTOR: Address = '0x00000000000000000000000000000000000000c3'
const NETWORK = `eip155:${CHAIN_ID}` as const

/** A server that sells: the library of the protocol asks for the payment, checks and collects it on the chain. */
export interface PaidServer {
  readonly url: string
  readonly port: number
  /** Each request with what it paid with. */
  readonly asked: { readonly path: string; readonly payment?: string }[]
  /** What it does in place of answering a request that is paid. */
  broken: 'no' | 'before' | 'after'
}

/** Reads and writes the chain for whoever collects payments. */
const collector = (chain: LocalChain) => ({
  getAddresses: () => [COLLECTOR],
  readContract: async ({ address, abi, functionName, args = [] }: Called) => {
    const data = encodeFunctionData({ abi: abi as Abi, functionName, args })
    const result = await chain.ask<Hex>('eth_call', { to: address, data })
    return decodeFunctionResult({ abi: abi as Abi, functionName, data: result })
  },
  verifyTypedData: (asked: object) => verifyTypedData(asked as Parameters<typeof verifyTypedData>[0]),
  writeContract: async ({ address, abi, functionName, args = [] }: Called) => {
    const data = encodeFunctionData({ abi: abi as Abi, functionName, args })
    return chain.ask<Hex>('eth_sendTransaction', { from: COLLECTOR, to: address, data })
  },
  sendTransaction: (asked: object) => chain.ask<Hex>('eth_sendTransaction', { from: COLLECTOR, ...asked }),
  waitForTransactionReceipt: async ({ hash }: { hash: Hex }) => {
    const { status } = await chain.ask<{ status: Hex }>('eth_getTransactionReceipt', hash)
    return { status: status === '0x1' ? 'success' : 'reverted' }
  },
  getCode: ({ address }: { address: Address }) => chain.ask<Hex>('eth_getCode', address),
})
interface Called {
  readonly address: Address
  readonly abi: readonly unknown[]
  readonly functionName: string
  readonly args?: readonly unknown[]
}

/** Starts a server that sells `/cheap` for 10 cents, `/dear` for 3 dollars and gives `/free` away. */
export const paidServer = async (t: Pick<Test, 'teardown'>, chain: LocalChain): Promise<PaidServer> => {
  const facilitator = registerExactEvmScheme(new x402Facilitator(), { signer: collector(chain), networks: NETWORK })
  const client: FacilitatorClient = {
    verify: (payload, requirements) => facilitator.verify(payload, requirements),
    settle: (payload, requirements) => facilitator.settle(payload, requirements),
    getSupported: async () => facilitator.getSupported() as Awaited<ReturnType<FacilitatorClient['getSupported']>>,
  }
  const price = (amount: string) => ({
    amount,
    asset: chain.dollars,
    extra: { name: 'Test Dollars', version: '2' },
  })
  const sells = (amount: string, description: string) => ({
    accepts: { scheme: 'exact', network: NETWORK, payTo: SELLER, price: price(amount) },
    description,
    mimeType: 'text/plain',
  })
  const resources = new x402ResourceServer(client).register(NETWORK, new ExactEvmScheme())
  const http = new x402HTTPResourceServer(resources, {
    'GET /cheap': sells('100000', 'One cheap page'),
    'GET /dear': sells('3000000', 'One dear page'),
  })
  await http.initialize()
  const state: { asked: PaidServer['asked']; broken: PaidServer['broken'] } = { asked: [], broken: 'no' }
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url ?? '/'
    const header = (name: string) => request.headers[name.toLowerCase()] as string | undefined
    const payment = header('payment-signature')
    state.asked.push({ path, ...(payment !== undefined && { payment }) })
    const adapter = {
      getHeader: header,
      getMethod: () => request.method ?? 'GET',
      getPath: () => path,
      getUrl: () => `http://${request.headers.host}${path}`,
      getAcceptHeader: () => header('accept') ?? '',
      getUserAgent: () => header('user-agent') ?? '',
    }
    const asked = { adapter, path, method: request.method ?? 'GET', ...(payment && { paymentHeader: payment }) }
    const result = await http.processHTTPRequest(asked)
    if (result.type === 'payment-error') {
      const { status, headers, body } = result.response
      response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body ?? {}))
      return
    }
    if (result.type === 'no-payment-required') {
      response.end('free of charge')
      return
    }
    if (state.broken === 'before') return void request.socket.destroy()
    const settled = await http.processSettlement(result.paymentPayload, result.paymentRequirements)
    if (state.broken === 'after') return void request.socket.destroy()
    if (!settled.success) {
      response.writeHead(settled.response.status, settled.headers).end(JSON.stringify(settled.response.body ?? {}))
      return
    }
    response.writeHead(200, { ...settled.headers, 'content-type': 'text/plain' }).end(`what ${path} sells`)
  }
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return Object.assign(state, { url: `http://localhost:${port}`, port })
}
