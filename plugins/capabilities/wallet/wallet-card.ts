import type { CardField, CatalogCard } from '../cards/contract.js'
import { NETWORKS } from './networks.js'

type WalletCard = Pick<CatalogCard, 'id' | 'name' | 'kind' | 'category' | 'description' | 'hint'> & {
  readonly fields: readonly CardField[]
}

const optional = (key: string, label: string, placeholder: string): CardField => ({
  ...{ key, label, placeholder },
  optional: true,
})

/** The card of a wallet. */
export const WALLET: WalletCard = {
  id: 'wallet',
  name: 'Wallet',
  kind: 'wallet',
  category: 'accounts',
  description: 'Money that agents pay servers with, up to limits that you set. You are asked before each payment.',
  hint: 'A key is made here. Send dollars to its address, and no more than you can lose.',
  fields: [
    { key: 'network', label: 'Network', placeholder: NETWORKS[0]!.alias },
    optional('rpcUrl', 'Endpoint of the network', 'https://rpc.example.org'),
    optional('perPaymentMaxUsd', 'Dollars a payment, at most', '1'),
    optional('dailyCapUsd', 'Dollars a day, at most', '5'),
    optional('autoApproveUnderUsd', 'Without a question below', '0'),
    { ...optional('allow', 'Pay only these hosts or addresses', '*.example.org'), multiline: true },
    { ...optional('deny', 'Never pay these', '*.example.com'), multiline: true },
    optional('asset', 'Contract of the dollars', '0x…'),
    { key: 'key', label: 'Key that you have already', secret: true, optional: true },
  ],
}
