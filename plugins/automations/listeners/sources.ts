import { refuse, type Host } from '../../../sdk/index.js'
import type { ContributedAutomations } from '../../extensions/contract.js'
import type {
  AutomationCatalog,
  AutomationTrigger,
  CatalogSource,
  CatalogTemplate,
  WorkspaceEventName,
} from '../contract.js'
import { cronProblem } from '../schedule/cron.js'
import { WEBCHAT } from '../webchat/strangers.js'
import { chatTriggerProblem } from '../webchat/trigger-check.js'

const EVENTS: { readonly [event in WorkspaceEventName]: string } = {
  'turn.settled': 'A turn of an agent ended',
  'agent.landed': 'An agent landed work',
  'deps.broken': 'An install of dependencies failed',
  'deps.fixed': 'A failed install works again',
}

/** What the enabled extensions contribute, and the sources of the sandbox's own groups. */
export interface Contributed extends ContributedAutomations {
  readonly own: readonly CatalogSource[]
}

/** What the enabled extensions and the sandbox's groups contribute. */
export const contributed = async (host: Pick<Host, 'call' | 'serves' | 'collect'>): Promise<Contributed> => {
  const own = (await host.collect('automations.sources')).flat()
  const given = (await host.serves('extensions.automations')) ? await host.call('extensions.automations') : NOTHING
  return { ...given, own }
}

const NOTHING: ContributedAutomations = { listeners: [], templates: [] }

/** Visitors of web pages, who need no extension. */
const VISITORS: CatalogSource = {
  ...{ provider: WEBCHAT, label: 'Chat of web pages', requires: [], enabled: true, events: [] },
  channel: { label: 'Site', placeholder: 'https://www.example.org' },
  starterPrompt: 'Answer the visitor of our web page in a few friendly sentences.',
}

const sourceOf = ({ extension, listener }: ContributedAutomations['listeners'][number]): CatalogSource => {
  const { provider, events, automation } = listener
  const { label, channel, branchField, mentionLabel, starterPrompt } = automation
  return {
    ...{ provider, label, extension, channel, starterPrompt, requires: [], enabled: true },
    events: events.map(({ type, label: words }) => ({ value: type, label: words })),
    ...(branchField && { branchField }),
    ...(mentionLabel !== undefined && { mentionLabel }),
  }
}

/** The trigger of a template, if one can be made of what it says. */
const triggerOf = (given: { kind: string; cron?: string; provider?: string; eventType?: string; event?: string }) => {
  const { kind, cron = '', provider = '', eventType, event = '' } = given
  switch (kind) {
    case 'schedule':
      return cronProblem({ cron }) === undefined ? ({ kind, cron } as const) : undefined
    case 'event':
      return { kind } as const
    case 'listener':
      return provider ? ({ kind, provider, ...(eventType !== undefined && { eventType }) } as const) : undefined
    default:
      return event in EVENTS ? ({ kind: 'workspace', event: event as WorkspaceEventName } as const) : undefined
  }
}

const templateOf = ({ extension, template }: ContributedAutomations['templates'][number]): CatalogTemplate[] => {
  const trigger = triggerOf(template.trigger)
  const { requires = [], trigger: _trigger, ...rest } = template
  return trigger ? [{ ...rest, requires: [...requires], trigger, extension }] : []
}

/** The triggers that can be used, and ready-made automations. */
export const catalogOf = ({ listeners, templates, own }: Contributed): AutomationCatalog => ({
  sources: [VISITORS, ...own, ...listeners.filter(({ listener }) => listener.provider !== WEBCHAT).map(sourceOf)],
  templates: templates.flatMap(templateOf),
  workspaceEvents: Object.entries(EVENTS).map(([value, label]) => ({ value, label })),
})

/** Why a trigger cannot fire, as a sentence with its field. */
export const triggerProblem = (
  trigger: AutomationTrigger,
  { sources }: Pick<AutomationCatalog, 'sources'>,
): string | undefined => {
  if (trigger.kind === 'schedule') return cronProblem(trigger)
  if (trigger.kind !== 'listener') return undefined
  const chat = chatTriggerProblem(trigger)
  if (chat !== undefined) return chat
  const { provider, eventType } = trigger
  const source = sources.find(one => one.provider === provider)
  const all = sources.map(one => one.provider)
  if (!source)
    return (
      `trigger.provider: expected ${all.join(' or ') || 'a provider of an enabled extension, of which there is none'}, `
      + `found ${JSON.stringify(provider.slice(0, 60))}`
    )
  if (eventType === undefined || source.events.some(({ value }) => value === eventType)) return undefined
  const kinds = source.events.map(({ value }) => value).join(' or ')
  return `trigger.eventType: expected ${kinds}, found ${JSON.stringify(eventType.slice(0, 60))}`
}

/** Refuses a trigger that cannot fire here. */
export const assertTrigger = (trigger: AutomationTrigger, catalog: Pick<AutomationCatalog, 'sources'>): void => {
  const problem = triggerProblem(trigger, catalog)
  if (problem === undefined) return
  const [path = ''] = problem.split(':', 1)
  refuse('unprocessable', problem, { errors: [{ path, expected: 'see the message' }] })
}
