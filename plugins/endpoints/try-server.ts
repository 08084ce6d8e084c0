import { shownAddress, withoutCall } from '../../sdk/node/models/base-address.js'
import { headersOf, ListFailure, type ListedServer, listServer } from '../../sdk/node/models/model-list.js'
import { bytesOf, outgoing, Unanswered } from '../../sdk/node/models/outgoing.js'
import { withoutValues, wordsOfServer } from '../../sdk/node/models/server-words.js'
import { readChatAnswer } from './chat-answer.js'
import { chatRequest } from './chat-request.js'
import type { EndpointSuggestion, EndpointTest, WireProtocol } from './contract.js'

/** What a test of a server was asked for. */
export interface TryAsked {
  readonly server: ListedServer
  /** The key alone, to send it as other protocols do. */
  readonly key: string | undefined
  readonly model?: string
  readonly tools: boolean
  readonly signal: AbortSignal
}

const CHAT_WITHIN = 25_000
const SUGGEST_WITHIN = 4_000
const PROTOCOLS: readonly WireProtocol[] = ['openai', 'anthropic', 'ollama']
/** Statuses with which a server says that it cannot do what was asked, rather than not now. */
const CANNOT = new Set([400, 404, 405, 415, 422, 500, 501])

/** Proves a server with real requests. */
export const tryServer = async (asked: TryAsked): Promise<EndpointTest> => {
  const { server, signal } = asked
  const none = { chat: 'skipped', streaming: false, tools: 'untested' } as const
  try {
    const { models, apiBase } = await listServer(server, signal)
    const model = asked.model ?? models[0]?.id
    if (model === undefined)
      return { ok: false, models: 0, ...none, detail: 'the server lists no model one can talk to: load one there' }
    const chat = await tryChat(asked, apiBase, model)
    return { ...chat, ok: chat.chat === 'ok' && models.length > 0, models: models.length, model }
  } catch (error) {
    if (!(error instanceof ListFailure)) throw error
    const suggestion = await suggested(asked)
    return {
      ok: false,
      models: 0,
      ...none,
      ...(error.status !== undefined && error.status !== 200 && { status: error.status }),
      ...(suggestion && { suggestion }),
      detail: error.message,
    }
  }
}

type Chat = Pick<EndpointTest, 'chat' | 'streaming' | 'tools' | 'latencyMs' | 'status' | 'detail'>

const tryChat = async (asked: TryAsked, apiBase: string, model: string): Promise<Chat> => {
  const plain = await ask(asked, apiBase, model, false)
  if (plain.detail !== undefined)
    return { chat: 'failed', streaming: plain.streamed, tools: 'untested', ...pick(plain) }
  const answered = {
    chat: 'ok' as const,
    streaming: plain.streamed,
    ...(plain.latencyMs !== undefined && { latencyMs: plain.latencyMs }),
  }
  if (!asked.tools) return { ...answered, tools: 'untested' }
  const offered = await ask(asked, apiBase, model, true)
  if (offered.detail === undefined) return { ...answered, tools: 'ok' }
  return { ...answered, tools: CANNOT.has(offered.status ?? 0) ? 'unsupported' : 'untested', ...pick(offered) }
}

interface Asked {
  readonly streamed: boolean
  readonly latencyMs?: number
  readonly status?: number
  /** Why there is no answer. */
  readonly detail?: string
}

const pick = ({ status, detail }: Asked) => ({
  ...(status !== undefined && { status }),
  ...(detail !== undefined && { detail }),
})

/** Asks a model once; over chat completions again by the other name of the limit, where the first is refused. */
const ask = async (asked: TryAsked, apiBase: string, model: string, tool: boolean): Promise<Asked> => {
  const given = await askOnce(asked, apiBase, model, { tool })
  const renamed =
    asked.server.protocol === 'openai' && given.status === 400 && /max_completion_tokens/.test(given.detail ?? '')
  return renamed ? askOnce(asked, apiBase, model, { tool, renamed }) : given
}

const askOnce = async (
  { server, signal }: TryAsked,
  apiBase: string,
  model: string,
  how: { tool: boolean; renamed?: boolean },
): Promise<Asked> => {
  const { protocol, headers, secrets } = server
  const { path, body } = chatRequest(protocol, model, how)
  const begun = Date.now()
  try {
    const within = CHAT_WITHIN
    const answer = await outgoing({ url: apiBase + path, method: 'POST', headers, body, signal, within })
    const { status } = answer
    if (status !== 200) {
      const words = wordsOfServer((await bytesOf(answer, 64 * 1024)).bytes.toString('utf8'), secrets)
      const name = new URL(apiBase).origin
      return { streamed: false, status, detail: `${name} refused to answer (${status})${words ? `: ${words}` : ''}` }
    }
    const { firstAt, streamed, wrong } = await readChatAnswer(protocol, answer, secrets)
    return {
      streamed,
      ...(firstAt !== undefined && { latencyMs: firstAt - begun }),
      ...(wrong !== undefined && { detail: withoutValues(wrong, secrets) }),
    }
  } catch (error) {
    if (error instanceof Unanswered) return { streamed: false, detail: withoutValues(error.message, secrets) }
    if (signal.aborted) return { streamed: false, detail: 'the model did not answer within 30 s' }
    throw error
  }
}

/** The first address and protocol, other than those given, under which a list is answered. */
const suggested = async ({ server, key, signal }: TryAsked): Promise<EndpointSuggestion | undefined> => {
  const given = shownAddress(server.baseUrl)
  const addresses = [...new Set([given, withoutCall(given), new URL(given).origin])]
  const others = addresses
    .flatMap(baseUrl => PROTOCOLS.map(protocol => ({ baseUrl, protocol })))
    .filter(({ baseUrl, protocol }) => baseUrl !== given || protocol !== server.protocol)
    .sort((a, b) => Number(b.protocol === server.protocol) - Number(a.protocol === server.protocol))
  const { authorization: _bearer, 'x-api-key': _key, ...rest } = server.headers
  const added = key === undefined ? server.headers : rest
  const found = await Promise.all(
    others.map(async other => {
      const headers = headersOf(other.protocol, key, added)
      const list = await listServer({ ...other, headers, secrets: server.secrets }, signal, SUGGEST_WITHIN).catch(
        () => undefined,
      )
      return list && list.models.length > 0 ? other : undefined
    }),
  )
  const worked = found.find(each => each !== undefined)
  return (
    worked && {
      ...(worked.baseUrl !== given && { baseUrl: worked.baseUrl }),
      ...(worked.protocol !== server.protocol && { protocol: worked.protocol }),
    }
  )
}
