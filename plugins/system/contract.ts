import typia from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Scope } from '../../sdk/types.js'
import type { AccessCalls } from './access/contract.js'
import type { MemberCalls } from './access/members-contract.js'
import type { TicketCalls } from './access/tickets-contract.js'
import type { BrowserCalls, BrowserEvents } from './browsers/contract.js'
import type { BundleCalls } from './bundles/contract.js'
import type { SubagentSessionCalls } from './subagents/contract.js'
import type { InfoCalls } from './info/contract.js'
import type { MachineCalls } from './machine/contract.js'
import type { MetricsCalls } from './metrics/contract.js'
import type { StreamCalls } from './stream/contract.js'
import type { TerminalCalls } from './terminals/contract.js'
import type { TerminalEvents, TerminalWorkCalls } from './terminals/work-contract.js'

export type * from './access/contract.js'
export type * from './access/members-contract.js'
export type * from './access/tickets-contract.js'
export type * from './browsers/contract.js'
export type * from './bundles/contract.js'
export type * from './subagents/contract.js'
export type * from './info/contract.js'
export type * from './machine/contract.js'
export type * from './metrics/contract.js'
export type * from './stream/contract.js'
export type * from './terminals/contract.js'
export type * from './terminals/work-contract.js'

export interface System
  extends
    AccessCalls,
    BrowserCalls,
    BundleCalls,
    SubagentSessionCalls,
    InfoCalls,
    MachineCalls,
    MemberCalls,
    MetricsCalls,
    StreamCalls,
    TerminalCalls,
    TerminalWorkCalls,
    TicketCalls {}

export interface SystemEvents extends BrowserEvents, TerminalEvents {
  'token.minted': { id: string; label: string; scope: Scope; by: string }
  /** A person was given a role or areas. */
  'member.changed': { email: string }
  /** A person lost access. */
  'member.removed': { email: string }
}

export const system: Contract<System> = {
  schema: () => typia.json.application<System>(),
  request: typia.misc.createValidatePrune<Requests<System>>(),
  reply: () => typia.createValidate<Replies<System>>(),
}
