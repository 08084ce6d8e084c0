import type { ErrorCode } from '../../../turn/frames/frames.js'
import { malformed, whole } from '../argument.js'
import { type ScriptVerb, verb } from '../verb.js'

const CODES: { readonly [code in ErrorCode]: true } = {
  'session-not-found': true,
  rate_limit: true,
  reauth: true,
  'token-refused': true,
  'not-entitled': true,
  'provider-outage': true,
  'trial-unavailable': true,
  'trial-model-unavailable': true,
  'trial-exhausted': true,
  'unknown-command': true,
  'model-invalid': true,
  'subscription-required': true,
  'agent-busy': true,
  'harness-missing': true,
  'harness-crashed': true,
  'context-full': true,
  'runner-lost': true,
  'script-syntax': true,
}

/** How a provider says no. */
export const failing: { readonly [name: string]: ScriptVerb } = {
  refuse: verb<{ readonly code: ErrorCode; readonly text: string }>({
    form: 'refuse CODE MESSAGE',
    help: 'fails the turn as a provider that refuses',
    lineless: true,
    native: true,
    read: ({ text }) => {
      const [code = ''] = text.split(/\s/, 1)
      const message = text.slice(code.length).trim()
      if (!Object.hasOwn(CODES, code) || message === '') {
        malformed(`refuse CODE MESSAGE, a code of ${Object.keys(CODES).join(', ')}`, text)
      }
      return { code: code as ErrorCode, text: message }
    },
    run: ({ code, text }, script) => script.fail(script.text(text), code),
  }),
  outage: verb<{ readonly times: number }>({
    form: 'outage [TIMES]',
    help: 'fails the first attempts of this message as a provider that is down',
    lineless: true,
    native: true,
    read: ({ text }) => ({ times: text === '' ? 1 : whole('outage [TIMES]', text, 1000) }),
    run: ({ times }, script) => {
      if (script.request.attempt > times) return
      return script.fail('the provider is out of service, as the script asked', 'provider-outage')
    },
  }),
}
