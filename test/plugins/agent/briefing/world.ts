import type { Test } from 'tap'
import type { Frame } from '../../../../plugins/agent/contract.js'
import type { SettingsGiven } from '../../../../plugins/settings/contract.js'
import { daemonWith, type SupportOptions } from '../../../support/daemon.js'
import { modelServer, type ScriptedReply, type SeenRequest } from '../../../support/servers/model-server.js'
import { framesOf } from '../../../support/turns.js'

/** A sandbox with settings, and a model server that records what it receives. */
export const briefedWorld = async (
  t: Test,
  replies: (request: SeenRequest, nth: number) => ScriptedReply,
  options: SupportOptions = {},
  groups: readonly string[] = [],
) => {
  const server = await modelServer(t, 'openai', replies)
  const daemon = await daemonWith(
    t,
    ['agent', 'agents', 'settings', ...(options.fakes?.['usage.record'] ? [] : ['usage']), ...groups],
    {
      ...options,
      fakes: {
        'endpoints.choices': () => ({
          endpoints: [
            {
              ...{ id: 'local', label: 'Local', default: 'm', ready: true },
              models: [{ id: 'm', label: 'M', efforts: [], badges: [] }],
            },
          ],
        }),
        'endpoints.target': () => server.target(),
        'workspace.find': () => ({ groups: [], files: 0, hits: 0 }) as never,
        ...options.fakes,
      },
    },
  )
  const set = (given: SettingsGiven) => daemon.client.call('POST /settings/patch', { set: given })
  const turn = async (conversationId: string, more: object = {}): Promise<Frame[]> => {
    await daemon.client.call('POST /agent', { conversationId, agent: 'endpoint/local', prompt: 'do it', ...more })
    return (await framesOf(daemon.client, conversationId).all()).map(({ event }) => event)
  }
  return { ...daemon, server, set, turn }
}

/** The instructions of a request, and its last message of a person. */
export const saidIn = ({
  body: { messages = [] },
}: SeenRequest): { readonly system: string; readonly asked: string } => {
  const textOf = (content: unknown): string =>
    typeof content === 'string' ? content : (content as { text?: string }[]).map(({ text = '' }) => text).join('\n')
  return {
    system: textOf(messages[0]!.content),
    asked: textOf(messages.findLast(({ role }) => role === 'user')!.content),
  }
}
