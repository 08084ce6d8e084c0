import type { Text } from '../../../sdk/types.js'

export interface QuestionOption {
  label: string
  description: string
  preview?: string
}
export interface Question {
  question: string
  header: string
  multiSelect: boolean
  options: QuestionOption[]
}
export interface PlanCard {
  kind: 'plan'
  requestId: string
  text: string
}
export interface QuestionCard {
  kind: 'question'
  requestId: string
  questions: Question[]
}
/** `alwaysLabel` is present only when "always" can be remembered. */
export interface PermissionCard {
  kind: 'permission'
  requestId: string
  toolName: string
  title?: string
  displayName?: string
  description?: string
  reason?: string
  path?: string
  alwaysLabel?: string
}
/** The agent hands a page of its browser to a person: sign in, solve a puzzle, look at something. */
export interface BrowserHelpCard {
  kind: 'browser_help'
  requestId: string
  /** The browser, as `GET /system/browsers` names it. */
  session: string
  /** The account whose sign-ins it has; `web`: none. */
  account: string
  message: string
}
/** The agent hands a terminal to a person, a shell where its own commands run. */
export interface TerminalHelpCard {
  kind: 'terminal_help'
  requestId: string
  /** The terminal, as `GET /system/terminals` names it. */
  session: string
  message: string
}
/** A run of a service that costs credits. */
export interface ServiceOfferCard {
  kind: 'service_offer'
  requestId: string
  offer: {
    slug: string
    name: string
    publisher: string
    description: string
    creditsPerRun: number
    probation?: boolean
    credits?: { allowance: number; remaining: number; resetsAt: string }
    request: string
    why?: string
  }
}
/** A capability of the catalogue that the agent proposes to connect. */
export interface CapabilityOfferCard {
  kind: 'capability_offer'
  requestId: string
  /** `connected`: the connections of this card that there were when it was offered. */
  offer: { card: string; name: string; why?: string; connected?: string[] }
}
export interface PaymentOfferCard {
  kind: 'payment_offer'
  requestId: string
  offer: {
    url: string
    description?: string
    payTo: string
    network: string
    asset: string
    assetName: string
    amountUsd: string
    spentTodayUsd: string
    dailyCapUsd: string
    why?: string
  }
}
/** A question of an agent to a person; the turn is parked until it is answered. */
export type Card =
  | PlanCard
  | QuestionCard
  | PermissionCard
  | BrowserHelpCard
  | TerminalHelpCard
  | ServiceOfferCard
  | CapabilityOfferCard
  | PaymentOfferCard

export interface PlanReply {
  kind: 'plan'
  requestId: Text
  approve: boolean
  feedback?: string
}
/** A value is an option's label or the person's own words; a question left out counts as skipped. */
export interface QuestionReply {
  kind: 'question'
  requestId: Text
  answers?: { [question: string]: string | string[] }
  cancelled?: boolean
}
export interface PermissionReply {
  kind: 'permission'
  requestId: Text
  decision: 'once' | 'always' | 'deny'
  feedback?: string
}
export interface BrowserHelpReply {
  kind: 'browser_help'
  requestId: Text
  helped: boolean
  note?: string
}
export interface TerminalHelpReply {
  kind: 'terminal_help'
  requestId: Text
  helped: boolean
  note?: string
}
/** A yes allows exactly one run. */
export interface ServiceOfferReply {
  kind: 'service_offer'
  requestId: Text
  approve: boolean
}
export interface CapabilityOfferReply {
  kind: 'capability_offer'
  requestId: Text
  connect: boolean
}
/** A yes allows exactly one payment. */
export interface PaymentOfferReply {
  kind: 'payment_offer'
  requestId: Text
  approve: boolean
}
/** A person's answer to a card. */
export type CardReply =
  | PlanReply
  | QuestionReply
  | PermissionReply
  | BrowserHelpReply
  | TerminalHelpReply
  | ServiceOfferReply
  | CapabilityOfferReply
  | PaymentOfferReply
