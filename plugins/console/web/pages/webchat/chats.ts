import type { Automation, ListenerTrigger } from '../../../../automations/contract.js'

/** An automation that answers visitors of web pages. */
export type ChatAutomation<A extends Automation = Automation> = A & { trigger: ListenerTrigger }

/** Whether visitors of web pages fire an automation. */
export const isChat = <A extends Automation>(automation: A): automation is ChatAutomation<A> =>
  automation.trigger.kind === 'listener' && automation.trigger.provider === 'webchat'
