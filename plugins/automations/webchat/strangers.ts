import { refuse, type Host } from '../../../sdk/index.js'
import { POWERED_TOOLS, withheldBy } from '../../../sdk/node/access/powers.js'
import type { Automation } from '../contract.js'

/** The provider of messages of visitors. */
export const WEBCHAT = 'webchat'
/** The persona of turns that answer visitors, unless the automation names one. */
const FRONT_DESK = 'front-desk'
/** Tools that no turn for a stranger has. */
const NEVER = new Set(['Shell', 'Process', 'Code', 'Delegate', 'Write', 'Append', 'Edit', 'Delete', 'Move'])

/** Whether visitors of web pages fire an automation. */
export const isWebchat = ({ trigger }: Pick<Automation, 'trigger'>): boolean =>
  trigger.kind === 'listener' && trigger.provider === WEBCHAT

/** The persona that the turns of an automation wear. */
export const wornBy = (automation: Pick<Automation, 'trigger' | 'actsAs'>): string | undefined =>
  automation.actsAs ?? (isWebchat(automation) ? FRONT_DESK : undefined)

/** Whether an automation can do without a card of its persona: it then has no tools. */
export const isBare = (automation: Pick<Automation, 'trigger' | 'actsAs'>): boolean =>
  isWebchat(automation) && wornBy(automation) === FRONT_DESK

/** Why an automation must not answer visitors; undefined: it may. */
export const strangerProblem = async (
  host: Pick<Host, 'call' | 'serves'>,
  automation: Pick<Automation, 'trigger' | 'actsAs' | 'allowedTools'>,
): Promise<string | undefined> => {
  if (!isWebchat(automation) || !(await host.serves('personas.forTurn'))) return undefined
  const { allowedTools } = automation
  const actsAs = wornBy(automation)!
  const { powers } = await host.call('personas.forTurn', { actsAs })
  const wide = POWERED_TOOLS.filter(
    tool => NEVER.has(tool) && withheldBy(powers, tool) === undefined && (!allowedTools || allowedTools.includes(tool)),
  )
  if (wide.length === 0) return undefined
  return (
    `allowedTools: strangers must not have ${wide.join(', ')}, which the persona ${actsAs} permits: narrow the `
    + 'persona, or list the tools it needs'
  )
}

/** Refuses an automation that would give strangers tools that change something. */
export const assertFitForStrangers = async (
  host: Pick<Host, 'call' | 'serves'>,
  automation: Automation,
): Promise<void> => {
  const problem = await strangerProblem(host, automation)
  if (problem !== undefined)
    refuse('unprocessable', problem, { errors: [{ path: 'allowedTools', expected: 'tools that change nothing' }] })
}
