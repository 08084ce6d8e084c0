import type { Contract } from '../../sdk/contract.js'

/** Whether a call answers with a value, a stream of events or a WebSocket. */
export const answerKind = (schema: ReturnType<Contract['schema']>, call: string): 'value' | 'stream' | 'socket' => {
  const output = schema.functions.find(({ name }) => name === call)?.output?.schema
  const shape = output?.$ref ? schema.components.schemas?.[output.$ref.split('/').at(-1)!] : output
  return shape?.properties?.['event-stream'] ? 'stream' : shape?.properties?.['socket-client'] ? 'socket' : 'value'
}
