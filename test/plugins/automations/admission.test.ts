import t from 'tap'
import { ALL_ADMITTED } from '../../../plugins/settings/accepted.js'
import { fireChecks } from '../../../plugins/automations/fires/checks.js'
import type { Automation, AutomationTrigger } from '../../../plugins/automations/contract.js'
import type { Fire } from '../../../plugins/automations/fires/fire.js'

const TRIGGERS: { readonly [source: string]: AutomationTrigger } = {
  schedule: { kind: 'schedule', cron: '0 9 * * *' },
  event: { kind: 'event' },
  listener: { kind: 'listener', provider: 'chat' },
  webchat: { kind: 'listener', provider: 'webchat' },
  workspace: { kind: 'workspace', event: 'agent.landed' },
}
const SOURCES = Object.keys(TRIGGERS)
const FIRE = {
  ...{ id: 'f-1', automationId: 'greet', at: 1, phase: 'checking', conversationId: 'a', run: 'r', messageId: 'm' },
  cause: 'schedule',
} as const satisfies Fire

const verdictOf = (source: string, admission: object) =>
  fireChecks({
    now: () => 0,
    admit: async asked => ({ ...ALL_ADMITTED, ...admission })[asked],
    persona: async () => true,
    stranger: async () => undefined,
    guard: async () => ({ pass: true, exitCode: 0, output: '' }) as never,
  }).of(
    { id: 'greet', trigger: TRIGGERS[source]!, prompt: 'greet', enabled: true } satisfies Automation,
    FIRE,
    new AbortController().signal,
  )

t.test('each source of fires has a verdict of its own, web chat too', async t => {
  for (const denied of SOURCES)
    for (const source of SOURCES) {
      const [denying, holding] = [
        await verdictOf(source, { [denied]: 'deny' }),
        await verdictOf(source, { [denied]: 'hold' }),
      ]
      const name = `${source} while ${denied} is not allowed`
      if (source !== denied) {
        t.same([denying, holding], [{ kind: 'go' }, { kind: 'go' }], name)
        continue
      }
      t.match(denying, { kind: 'skip', detail: `the settings deny fires by ${source} ` }, name)
      t.match(holding, { kind: 'hold', reason: `the settings hold fires by ${source} ` }, name)
    }
})
