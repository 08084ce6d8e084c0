import type { ElicitAnswer, ToolElicits } from '../../capabilities/contract.js'
import type { CardReply } from '../cards/card.js'
import type { CardDraft } from '../providers/adapter.js'

interface Field {
  readonly type?: unknown
  readonly title?: unknown
  readonly description?: unknown
  readonly enum?: unknown
}
type Value = NonNullable<ElicitAnswer['content']>[string]

const MOST_FIELDS = 10
const MOST_TEXT = 4000
/** A longer choice is not shown: cut, it would be another one. */
const MOST_CHOICE = 400

/** The card for a server's question; undefined if a card cannot show it. */
export const elicitationCard = ({ message, schema }: ToolElicits): CardDraft | undefined => {
  const fields = fieldsOf(schema)
  if (fields.length > MOST_FIELDS) return undefined
  if (fields.length === 0)
    return { kind: 'question', questions: [question(message, [{ label: 'Yes', description: '' }])] }
  return {
    kind: 'question',
    questions: fields.map(([name, field]) =>
      question(
        fields.length === 1 ? message : labelOf(name, field, message),
        choicesOf(field).map(label => ({ label, description: '' })),
      ),
    ),
  }
}

/** Converts a person's answer to the card into the server's format. */
export const elicitationAnswer = (
  { message, schema }: ToolElicits,
  reply: CardReply | undefined,
): Omit<ElicitAnswer, 'id'> => {
  if (reply?.kind !== 'question' || reply.cancelled) return { action: 'cancel' }
  const fields = fieldsOf(schema)
  const answers = reply.answers ?? {}
  if (fields.length === 0) return { action: answers[short(message)] === 'Yes' ? 'accept' : 'decline' }
  const content: { [name: string]: Value } = {}
  for (const [name, field] of fields) {
    const given = answers[short(fields.length === 1 ? message : labelOf(name, field, message))]
    const value = given === undefined ? undefined : valueOf(field, given)
    if (value !== undefined) content[name] = value
  }
  return { action: 'accept', content }
}

const question = (text: string, options: { label: string; description: string }[]) => ({
  question: short(text),
  header: 'Question',
  multiSelect: false,
  options,
})

const short = (text: string): string => text.slice(0, MOST_TEXT).toWellFormed()

const fieldsOf = ({ properties }: { readonly [keyword: string]: unknown }): [name: string, field: Field][] =>
  typeof properties === 'object' && properties !== null
    ? Object.entries(properties).map(([name, field]) => [name, (field ?? {}) as Field])
    : []

const labelOf = (name: string, { title, description }: Field, message: string): string =>
  `${message}\n${typeof title === 'string' ? title : name}${typeof description === 'string' ? `: ${description}` : ''}`

const choicesOf = (field: Field): string[] => {
  if (Array.isArray(field.enum)) {
    const fits = (each: unknown): each is string => typeof each === 'string' && each.length <= MOST_CHOICE
    return field.enum.filter(fits).slice(0, 20)
  }
  return field.type === 'boolean' ? ['Yes', 'No'] : []
}

const valueOf = ({ type }: Field, answer: string | readonly string[]): Value | undefined => {
  const given = typeof answer === 'string' ? answer : answer.join(', ')
  if (type === 'boolean') return /^(?:yes|true)$/i.test(given)
  if (type !== 'number' && type !== 'integer') return given
  const number = Number(given)
  return Number.isFinite(number) ? number : undefined
}
