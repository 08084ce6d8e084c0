import { unseenBut } from '../../unseen.js'

/** One model of a server's list. */
export interface ListedModel {
  id: string
  label: string
  efforts: string[]
  description?: string
  badges: ('reasoning' | 'fast')[]
  contextWindow?: number
}

/** The protocol of a server. */
export type ServerProtocol = 'openai' | 'anthropic' | 'ollama'

export const MOST_ROWS = 5000
const UNSEEN = unseenBut('')
const MOST_ID = 200
const MOST_TEXT = 400

/** Names of models that do not chat: for embedding, speech, transcription, images, ranking, or moderation. */
const NO_CHAT = new RegExp(
  '(^|[-_/:.])(text-)?(embed(ding)?s?|embedder|e5|bge|gte|minilm|whisper|tts|stt|asr|speech|transcribe|transcription|'
    + 'dall-e|dalle|imagen|image|images|flux|sdxl|stable-diffusion|veo|sora|lyria|rerank|reranker|ranker|moderation|'
    + 'guard|realtime|audio|ocr)([-_/:.\\d]|$)|(^|[-_/:.])(nomic|mxbai|arctic)-embed|embedding',
  'i',
)
const NO_CHAT_TYPES = /embed|rerank|image|audio|speech|moderation|transcri|tts/i

interface Fields {
  readonly [name: string]: unknown
}

const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}

const textOf = (value: unknown): string | undefined =>
  (typeof value === 'string' && value.replace(UNSEEN, ' ').replace(/ {2,}/g, ' ').trim()) || undefined

const tokensOf = (...values: readonly unknown[]): number | undefined =>
  values.find((value): value is number => Number.isInteger(value) && Number(value) > 0 && Number(value) < 2 ** 31)

/** Whether a row of a list is a chat model, by its name and the server's description. */
const chats = (id: string, row: Fields): boolean => {
  const architecture = fieldsOf(row.architecture)
  const { output_modalities: outputs } = architecture
  if (Array.isArray(outputs) && outputs.length > 0 && !outputs.includes('text')) return false
  const type = textOf(row.type) ?? textOf(row.task) ?? ''
  if (NO_CHAT_TYPES.test(type)) return false
  if (fieldsOf(row.capabilities).completion_chat === false) return false
  return !NO_CHAT.test(id)
}

/** A display name: the server's, else the last part of the id without its extension. */
export const labelOfModel = (id: string, given?: unknown): string =>
  (
    textOf(given)
    ?? (id
      .split('/')
      .at(-1)!
      .replace(/\.gguf$/i, '')
      || id)
  ).slice(0, MOST_ID)

/** The rows of a list in the form of chat completions and messages: `{ data: [{ id }] }`. */
export const rowsOfData = (value: unknown): ListedModel[] | undefined => {
  const { data, models } = fieldsOf(value)
  const list = Array.isArray(value) ? value : Array.isArray(data) ? data : Array.isArray(models) ? models : undefined
  if (!list) return undefined
  return unique(
    list.slice(0, MOST_ROWS).flatMap((each): ListedModel[] => {
      const row = fieldsOf(each)
      const id = textOf(row.id) ?? textOf(row.name)
      if (id === undefined || id.length > MOST_ID || !chats(id, row)) return []
      const window = tokensOf(
        row.context_length,
        row.context_window,
        row.max_context_length,
        row.max_model_len,
        row.max_input_tokens,
        fieldsOf(row.meta).n_ctx,
        fieldsOf(row.meta).n_ctx_train,
        fieldsOf(row.top_provider).context_length,
      )
      const description = textOf(row.description)
      const parameters = row.supported_parameters
      const reasons = Array.isArray(parameters) && parameters.includes('reasoning')
      return [
        {
          id,
          label: labelOfModel(id, row.display_name ?? (row.id === undefined ? undefined : row.name)),
          efforts: [],
          badges: reasons ? ['reasoning'] : [],
          ...(description && { description: description.slice(0, MOST_TEXT) }),
          ...(window !== undefined && { contextWindow: window }),
        },
      ]
    }),
  )
}

/** The names of a list in the form of tags: `{ models: [{ name }] }`. */
export const namesOfTags = (value: unknown): string[] | undefined => {
  const { models } = fieldsOf(value)
  if (!Array.isArray(models)) return undefined
  const names = models.slice(0, MOST_ROWS).flatMap(each => {
    const row = fieldsOf(each)
    const id = textOf(row.model) ?? textOf(row.name)
    const family = textOf(fieldsOf(row.details).family) ?? ''
    return id !== undefined && id.length <= MOST_ID && chats(id, row) && !/bert/.test(family) ? [id] : []
  })
  return [...new Set(names)]
}

/** A row of a list of tags with the server's details of the model; undefined if it does not chat. */
export const rowOfTag = (id: string, shown: unknown): ListedModel | undefined => {
  const { capabilities, model_info: info } = fieldsOf(shown)
  const abilities: unknown[] = Array.isArray(capabilities) ? capabilities : []
  if (abilities.length > 0 && !abilities.includes('completion')) return undefined
  const facts = fieldsOf(info)
  const window = tokensOf(facts[`${String(facts['general.architecture'])}.context_length`])
  return {
    id,
    label: labelOfModel(id),
    efforts: [],
    badges: abilities.includes('thinking') ? ['reasoning'] : [],
    ...(window !== undefined && { contextWindow: window }),
  }
}

const unique = (rows: readonly ListedModel[]): ListedModel[] => [...new Map(rows.map(row => [row.id, row])).values()]

/**
 * Parses a JSON list; of a truncated text it keeps the complete rows.
 *
 * @throws SyntaxError
 */
export const parseList = (text: string, cut: boolean): unknown => {
  if (!cut) return JSON.parse(text)
  const end = endOfRows(text)
  return JSON.parse(`${text.slice(0, end)}]}`)
}

/** The end of the last complete object in a list of the outer object. */
const endOfRows = (text: string): number => {
  let [depth, end, quoted] = [0, 0, false]
  for (let at = 0; at < text.length; at++) {
    const char = text[at]
    if (quoted) {
      if (char === '\\') at++
      else if (char === '"') quoted = false
    } else if (char === '"') quoted = true
    else if (char === '{' || char === '[') depth++
    else if (char === '}' || char === ']') {
      depth--
      if (depth === 2 && char === '}') end = at + 1
    }
  }
  return end
}
