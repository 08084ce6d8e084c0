import type { Contract } from '../../sdk/contract.js'

/** What a call answers with, which decides how it is asked: a value, a stream of events, or a socket. */
export const answerKind = (schema: ReturnType<Contract['schema']>, call: string): 'value' | 'stream' | 'socket' => {
  const output = schema.functions.find(({ name }) => name === call)?.output?.schema
  const shape = output?.$ref ? schema.components.schemas?.[output.$ref.split('/').at(-1)!] : output
  return shape?.properties?.['event-stream'] ? 'stream' : shape?.properties?.['socket-client'] ? 'socket' : 'value'
}
