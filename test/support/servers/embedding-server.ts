import { modelServer, type ModelServer, type ScriptedReply } from './model-server.js'

/** The protocols that have a call for embeddings. */
export type EmbeddingProtocol = 'openai' | 'ollama'

/** A model server that embeds texts by the subjects of their words. */
export interface EmbeddingServer {
  readonly server: ModelServer
  /** The texts of each request, in order. */
  readonly asked: string[][]
  /** What it answers in place of embeddings; undefined: embeddings. */
  reply: ((texts: readonly string[]) => ScriptedReply | undefined) | undefined
  /** How many numbers an embedding has, at least as many as there are subjects. */
  numbers: number
}

const PATHS = { openai: '/v1/embeddings', ollama: '/api/embed' }

/** The answer of a server with embeddings, as its protocol has it. */
export const embeddingAnswer = (protocol: EmbeddingProtocol, all: readonly (readonly number[])[]): ScriptedReply => {
  const entries = all.map((embedding, index) => ({ object: 'embedding', index, embedding }))
  const answer =
    protocol === 'openai'
      ? // An order of its own: the entries say which text they are of.
        { object: 'list', data: entries.toReversed(), usage: { prompt_tokens: 7 * all.length, total_tokens: 7 } }
      : { model: 'e', embeddings: all, prompt_eval_count: 7 * all.length }
  return { status: 200, body: JSON.stringify(answer) }
}

/** Starts a model server that offers an embedding model; each subject is a list of words. */
export const embeddingServer = async (
  t: Parameters<typeof modelServer>[0],
  protocol: EmbeddingProtocol,
  subjects: readonly (readonly string[])[],
): Promise<EmbeddingServer> => {
  const asked: string[][] = []
  const embedded = (text: string): number[] => {
    const low = text.toLowerCase()
    const found = subjects.map(words => words.filter(word => low.includes(word)).length)
    // Models give all texts something in common.
    return [...found, ...Array.from({ length: it.numbers - subjects.length }, () => 0.5)]
  }
  const server = await modelServer(t, protocol, ({ path, body }) => {
    if (path === '/v1/models') return { status: 200, body: '{"data":[{"id":"e"}]}' }
    if (path === '/api/tags') return { status: 200, body: '{"models":[{"name":"e"}]}' }
    if (path !== PATHS[protocol]) return { status: 404, body: '{"error":{"message":"no such path"}}' }
    const texts = body.input as string[]
    asked.push(texts)
    return it.reply?.(texts) ?? embeddingAnswer(protocol, texts.map(embedded))
  })
  const it: EmbeddingServer = { server, asked, reply: undefined, numbers: subjects.length + 2 }
  return it
}
