import { createHmac } from 'node:crypto'
import { placeholderOf } from '../../sdk/node/network/bound-traffic.js'
import type { KnownSecret } from './open-store.js'

/** Whether a value goes to some hosts alone. */
export const isBound = ({ hosts = [] }: Pick<KnownSecret, 'hosts'>): boolean => hosts.length > 0

/** Why a value that is bound to hosts may not go into a text. */
export const boundRefusal = ({ name, hosts = [] }: KnownSecret): string =>
  `{{secret:${name}}} is bound to ${hosts.slice(0, 5).join(', ')}${hosts.length > 5 ? ' and others' : ''}, and `
  + 'this network is shared or has no proxy that puts it into requests to these hosts alone: it was not used'

/** What stands for a value in one turn: random, and the same wherever the turn refers to the value. */
export const placeholderFor = (name: string, seed: string): string =>
  placeholderOf(createHmac('sha512', seed).update(name).digest())
