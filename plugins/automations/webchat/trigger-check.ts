import { refuse } from '../../../sdk/index.js'
import { namedAddress } from '../../../sdk/node/named-address.js'
import type { Automation, AutomationTrigger } from '../contract.js'
import { originProblem } from './origins.js'
import { isWebchat, WEBCHAT } from './strangers.js'

/** Fields of a listener that visitors' messages do not have. */
const ELSEWHERE = ['channelId', 'eventType', 'mentioned', 'branch'] as const

/** Why a trigger does not fit the chat of web pages, or its fields do not fit another trigger, with the field. */
export const chatTriggerProblem = (trigger: AutomationTrigger): string | undefined => {
  if (trigger.kind !== 'listener') return undefined
  const { provider, allowedOrigins } = trigger
  if (provider !== WEBCHAT)
    return (
      allowedOrigins
      && `trigger.allowedOrigins: expected it with the provider ${WEBCHAT} alone, found ${provider.slice(0, 60)}`
    )
  const other = ELSEWHERE.find(field => trigger[field] !== undefined)
  if (other !== undefined) return `trigger.${other}: messages of visitors have none; leave it out`
  const wrong = (allowedOrigins ?? []).map(originProblem)
  const at = wrong.findIndex(problem => problem !== undefined)
  return at < 0 ? undefined : `trigger.allowedOrigins[${at}]: ${wrong[at]}`
}

/** Why the chat of an automation cannot work, with the field. */
const chatProblem = ({ webchat, ...automation }: Pick<Automation, 'trigger' | 'webchat'>): string | undefined => {
  if (!webchat) return undefined
  if (!isWebchat(automation)) return `webchat: expected it with a trigger of the provider ${WEBCHAT} alone`
  const { access, signIn } = webchat
  if (access === 'signed-in' && !signIn)
    return 'webchat.signIn: expected issuer and clientId of your site, because access is signed-in; found none'
  if (!signIn) return undefined
  const url = URL.parse(signIn.issuer)
  return url && namedAddress(url, signIn.issuer)
    ? undefined
    : `webchat.signIn.issuer: expected https and no user, found ${JSON.stringify(signIn.issuer.slice(0, 200))}`
}

/** Refuses a chat that cannot work. */
export const assertChat = (automation: Pick<Automation, 'trigger' | 'webchat'>): void => {
  const problem = chatProblem(automation)
  if (problem === undefined) return
  const [path = ''] = problem.split(':', 1)
  refuse('unprocessable', problem, { errors: [{ path, expected: 'see the message' }] })
}
