import { refuse, type Host } from '../../../sdk/index.js'
import type { StoredApproval } from '../stored-approval.js'

type SecretsHost = Pick<Host, 'call' | 'serves'>

/** A text with the values of its secrets, at the moment it is sent. */
export const textWithSecrets = async (host: SecretsHost, item: StoredApproval, text: string): Promise<string> => {
  if (!text.includes('{{secret:')) return text
  if (!(await host.serves('secrets.resolve'))) refuse('unprocessable', 'this sandbox stores no secrets')
  const { id, conversationId } = item
  const answer = await host.call('secrets.resolve', {
    ...{ text, lane: 'code', detail: `approval ${id}` },
    ...(conversationId !== undefined && { conversationId }),
  })
  if (answer.refused !== undefined) refuse('forbidden', answer.refused)
  if (answer.unknown?.length) refuse('unprocessable', `no secret is stored as ${answer.unknown.join(', ')}`)
  return answer.text ?? text
}

/** A JSON value with the values of secrets in its texts. */
export const withSecrets = async (host: SecretsHost, item: StoredApproval, value: unknown): Promise<unknown> => {
  if (typeof value === 'string') return textWithSecrets(host, item, value)
  if (Array.isArray(value)) return Promise.all(value.map(part => withSecrets(host, item, part)))
  if (typeof value !== 'object' || value === null) return value
  const parts = Object.entries(value).map(async ([key, part]) => [key, await withSecrets(host, item, part)] as const)
  return Object.fromEntries(await Promise.all(parts))
}
