import { Refusal, refuse, type Context, type Host } from '../../sdk/index.js'
import type { AccessView } from '../../sdk/node/access/access-view.js'
import { resolvePath } from '../../sdk/node/files/workspace-paths.js'
import type { NeedAnswers, NeedField } from './contract.js'

const MOST_TEXT = 64 * 1024

const misfit = (path: string, expected: string, found?: string): never =>
  refuse('unprocessable', `answers.${path}: expected ${expected}${found === undefined ? '' : `, found ${found}`}`, {
    errors: [{ path: `answers.${path}`, expected, ...(found !== undefined && { value: found }) }],
  })

const shown = (value: string | boolean): string => JSON.stringify(value).slice(0, 120)

/** Checks answers against the fields that were asked for. */
export const checkedAnswers = async (
  fields: readonly NeedField[],
  given: NeedAnswers,
  seen: AccessView,
  workspace: string,
): Promise<void> => {
  for (const key of Object.keys(given))
    if (!fields.some(field => field.key === key))
      misfit(key.slice(0, 64), `one of ${fields.map(field => field.key).join(', ') || 'no answers'}`, 'another one')
  for (const field of fields) {
    const value = Object.hasOwn(given, field.key) ? given[field.key] : undefined
    if (value === undefined || value === '') {
      if (field.required) misfit(field.key, 'an answer', 'none')
    } else await checkAnswer(field, value, seen, workspace)
  }
}

const checkAnswer = async (
  { key, type, options = [] }: NeedField,
  value: string | boolean,
  seen: AccessView,
  workspace: string,
): Promise<void> => {
  if (type === 'yes-no') return typeof value === 'boolean' ? undefined : misfit(key, 'true or false', shown(value))
  if (typeof value !== 'string') return misfit(key, 'a text', String(value))
  if (Buffer.byteLength(value) > MOST_TEXT)
    refuse('too-large', `answers.${key}: expected at most ${MOST_TEXT} bytes, found ${Buffer.byteLength(value)}`)
  if (type === 'choice' && !options.some(option => option.value === value))
    misfit(key, `one of ${options.map(option => option.value).join(', ')}`, shown(value))
  if (type === 'file') {
    const found = await resolvePath(workspace, value).catch((error: unknown) => {
      if (error instanceof Refusal) return misfit(key, 'the path of a file of the workspace', shown(value))
      throw error
    })
    if (found.kind !== 'file' || !(await seen.sees(found.path)))
      misfit(key, 'the path of a file of the workspace', shown(value))
  }
}

/** Stores the secrets among answers on behalf of who gave them, and puts references in their places. */
export const storedAnswers = async (
  host: Pick<Host, 'call' | 'serves'>,
  fields: readonly NeedField[],
  given: NeedAnswers,
  context: Context,
): Promise<NeedAnswers> => {
  const stored: NeedAnswers = {}
  for (const { key, type, secretKey } of fields) {
    const value = Object.hasOwn(given, key) ? given[key] : undefined
    if (value === undefined || value === '') continue
    if (type !== 'secret') {
      stored[key] = value
      continue
    }
    if (!(await host.serves('POST /secrets')))
      refuse('dependency', 'this sandbox stores no secrets; nothing of the answers was stored')
    await host
      .call('POST /secrets', { key: secretKey!, value: String(value) }, { as: context })
      .catch((error: unknown) => {
        const { reason, message } = Refusal.from(error)
        if (reason !== 'conflict' && reason !== 'unavailable') throw error
        return refuse('dependency', `the secret was not stored, and nothing of the answers: ${message}`)
      })
    stored[key] = `{{secret:${secretKey}}}`
  }
  return stored
}
