import { refuse, Refusal, type Host } from '../../../sdk/index.js'
import { valueMasker } from '../../../sdk/node/access/value-masker.js'
import type { StoredApproval } from '../stored-approval.js'
import { UnknownOutcome, type CarriedOut, type Executor, type Missing } from './executor.js'

type ToolHost = Pick<Host, 'call' | 'serves'>

const SERVER = 'extension:'
const MOST_MS = 30 * 60_000
const MOST_RESULT = 4_000
/** Failures before the call. */
const UNCALLED = new Set(['not-found', 'forbidden', 'invalid', 'unprocessable'])
const ENDED = 'its process ended before it answered'

/** The tools of the extensions that run. */
export const toolsOfExtensions = async (host: ToolHost) =>
  (await host.serves('extensions.tools')) ? (await host.call('extensions.tools')).tools : []

/** Calls the tool of an extension that the key of an action names: `<publisher>.<name>.<tool>`. */
export const extensionTool = (
  host: ToolHost,
  item: StoredApproval,
  offered: Awaited<ReturnType<typeof toolsOfExtensions>>,
): Executor | Missing => {
  const { key, args } = item.action!
  const tool = offered.find(({ server, name }) => `${server.slice(SERVER.length)}.${name}` === key)
  if (!tool) return { problem: `no running extension has a tool ${key}` }
  const [provider = '', ...type] = key.split('.')
  const text = JSON.stringify(args).slice(0, 20_000).toWellFormed()
  return {
    lane: key,
    subjects: [
      { kind: 'tool', text: tool.agentName },
      { kind: 'action', provider: provider.slice(0, 60), type: type.join('.').slice(0, 60), text },
    ],
    carryOut: (run, signal) => called(host, item, { server: tool.server, name: tool.name, run }, signal),
  }
}

const called = async (
  host: ToolHost,
  { action, conversationId = 'approvals' }: StoredApproval,
  tool: { readonly server: string; readonly name: string; readonly run: string },
  signal: AbortSignal,
): Promise<CarriedOut> => {
  const late = AbortSignal.timeout(MOST_MS)
  let failure: string | undefined
  const asked = { ...tool, conversationId, input: action!.args }
  try {
    const events = await host.call('extensions.tool', asked, { signal: AbortSignal.any([signal, late]) })
    for await (const event of events) {
      if (event.kind !== 'result') continue
      const text = (await valueMasker(host)).mask(event.text)
      const result = [...text].slice(0, MOST_RESULT).join('')
      if (event.ok) return { result }
      failure = result.slice(0, 500) || 'it failed without a reason'
    }
  } catch (error) {
    signal.throwIfAborted()
    if (late.aborted) throw new UnknownOutcome('it did not answer within 30 minutes')
    if (error instanceof Refusal && UNCALLED.has(error.reason)) throw error
    throw new UnknownOutcome(error instanceof Refusal ? error.message : ENDED)
  }
  if (failure !== undefined) refuse('dependency', failure)
  throw new UnknownOutcome(ENDED)
}
