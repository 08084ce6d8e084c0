import type { OpenAICompatibleChatLanguageModel } from '@ai-sdk/openai-compatible'

type Streams = OpenAICompatibleChatLanguageModel['doStream']
/** One request to a model. */
export type ModelCall = Parameters<Streams>[0]
/** The messages of a request. */
export type ModelPrompt = ModelCall['prompt']
type Streamed = Awaited<ReturnType<Streams>>
/** A model of a server, as every provider package offers one. */
export interface ServerModel {
  doStream(call: ModelCall): PromiseLike<Streamed>
}
/** One part of a streamed answer. */
export type StreamPart = Streamed['stream'] extends ReadableStream<infer Part> ? Part : never
/** What a request gives its provider package beside the messages. */
export type ProviderOptions = NonNullable<ModelCall['providerOptions']>
