import type { FastModeFrame } from '../../../turn/frames/frames.js'
import { malformed, oneOf, parts, whole } from '../argument.js'
import type { ScriptFrames } from '../context.js'
import { type ScriptVerb, verb } from '../verb.js'

const MOST_TOKENS = 4_294_967_295
const MOST_MS = 86_400_000 * 366
const MOST_RETRIES = 1000
const MOST_RETRY_MS = 86_400_000
/** Percent of a limit from which a provider warns. */
const WARNS_AT = 80
const BUSY = 529

interface Usage {
  readonly input: number
  readonly output: number
  readonly costUsd?: number
}
interface Context {
  readonly tokens: number
  readonly window: number
}
interface Limit {
  readonly percent: number
  readonly resetMs?: number
}
interface Retry {
  readonly times: number
  readonly ms: number
}

/** What a model's server would tell beside its words. */
export const accounting: { readonly [name: string]: ScriptVerb } = {
  usage: verb<Usage>({
    form: 'usage IN OUT [USD]',
    help: 'what the turn counts as having cost',
    lineless: true,
    read: ({ text }) => {
      const form = 'usage IN OUT [USD]'
      const [input, output, usd] = parts(form, text, 3)
      if (usd !== undefined && !/^\d{1,9}(\.\d{1,9})?$/.test(usd)) malformed(form, text)
      const tokens = { input: whole(form, input, MOST_TOKENS), output: whole(form, output, MOST_TOKENS) }
      return { ...tokens, ...(usd !== undefined && { costUsd: Number(usd) }) }
    },
    run: (usage, script) => script.note({ usage }),
  }),
  context: verb<Context>({
    form: 'context TOKENS WINDOW',
    help: "how much of the model's context is in use",
    lineless: true,
    read: ({ text }) => {
      const form = 'context TOKENS WINDOW, a window from 1'
      const [tokens, window] = parts(form, text, 2)
      const read = { tokens: whole(form, tokens, MOST_TOKENS), window: whole(form, window, MOST_TOKENS) }
      return read.window > 0 ? read : malformed(form, text)
    },
    run: async function* ({ tokens, window }, script): ScriptFrames {
      script.note({ context: tokens })
      yield* script.once({ kind: 'context_usage', tokens, contextWindow: window })
    },
  }),
  compact: verb({
    form: 'compact',
    help: 'the context is made shorter',
    lineless: true,
    read: ({ text }) => (text === '' ? {} : malformed('compact alone on its line', `compact ${text}`)),
    run: async function* (_, script): ScriptFrames {
      const { context } = script.saved
      yield* script.once({ kind: 'compact', trigger: 'script', ...(context !== undefined && { preTokens: context }) })
    },
  }),
  limit: verb<Limit>({
    form: 'limit PERCENT [RESET_MS]',
    help: "how much of the account's limit is used, and in how many ms it renews",
    lineless: true,
    native: true,
    read: ({ text }) => {
      const form = `limit PERCENT [RESET_MS], a percentage to 100, at most ${MOST_MS} ms`
      const [percent, reset] = parts(form, text, 2)
      return {
        percent: whole(form, percent, 100),
        ...(reset !== undefined && { resetMs: whole(form, reset, MOST_MS) }),
      }
    },
    run: async function* ({ percent, resetMs }, script): ScriptFrames {
      const measuredAt = Date.now()
      const status = percent >= 100 ? 'rejected' : percent >= WARNS_AT ? 'allowed_warning' : 'allowed'
      const renews = resetMs !== undefined && { resetsAt: measuredAt + resetMs }
      yield* script.once(
        { kind: 'rate_limit_info', status, rateLimitType: 'script', utilization: percent, ...renews },
        { kind: 'account_usage', windows: [{ kind: 'script', utilization: percent, measuredAt, ...renews }] },
      )
    },
  }),
  fast: verb<{ readonly state: FastModeFrame['state'] }>({
    form: 'fast on|off|cooldown',
    help: "the model's fast mode",
    lineless: true,
    native: true,
    read: ({ text }) => ({ state: oneOf('fast on, fast off or fast cooldown', text, ['on', 'off', 'cooldown']) }),
    run: async function* ({ state }, script): ScriptFrames {
      yield* script.once({ kind: 'fast_mode', state })
    },
  }),
  retry: verb<Retry>({
    form: 'retry TIMES MS',
    help: "the model's server is asked again so often, each time after MS",
    lineless: true,
    native: true,
    read: ({ text }) => {
      const form = `retry TIMES MS, at most ${MOST_RETRIES} times and ${MOST_RETRY_MS} ms in all`
      const [times, ms] = parts(form, text, 2)
      const read = { times: whole(form, times, MOST_RETRIES), ms: whole(form, ms, MOST_RETRY_MS) }
      return read.times > 0 && read.times * read.ms <= MOST_RETRY_MS ? read : malformed(form, text)
    },
    run: async function* ({ times, ms }, script): ScriptFrames {
      const end = Date.now() + (await script.left(times * ms))
      for (let attempt = 1; attempt <= times; attempt++) {
        const nextAttemptAt = end - (times - attempt) * ms
        if (script.replay.count('provider_retry') < attempt) {
          yield { kind: 'provider_retry', attempt, maxAttempts: times, nextAttemptAt, status: BUSY }
        }
        await script.sleep(Math.min(ms, nextAttemptAt - Date.now()))
      }
    },
  }),
}
