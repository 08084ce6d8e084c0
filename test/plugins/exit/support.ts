import type { ExitLine, ExitLink } from '../../../plugins/exit/contract.js'
import type { ApplyFrame, Capability } from '../../../plugins/capabilities/contract.js'
import type { Client } from '../../../sdk/client.js'

interface Having {
  readonly client: Client
}

/** Adds an exit as a connection and answers every step. */
export const addExit = async (
  { client }: Having,
  id: string,
  config: { [field: string]: string },
): Promise<ApplyFrame[]> => {
  const frames: ApplyFrame[] = []
  const given: Capability = { id, kind: 'exit', config }
  for await (const frame of await client.call('POST /capabilities', given)) frames.push(frame)
  return frames
}

const all = async (lines: AsyncIterable<ExitLine>): Promise<ExitLine[]> => {
  const seen: ExitLine[] = []
  for await (const line of lines) seen.push(line)
  return seen
}

/** Starts an exit and answers every step. */
export const startExit = async ({ client }: Having, id: string): Promise<ExitLine[]> =>
  all(await client.call('POST /exit/{id}/start', { id }))

/** Moves an exit and answers every step. */
export const useExit = async ({ client }: Having, id: string, country?: string): Promise<ExitLine[]> =>
  all(await client.call('POST /exit/{id}/use', { id, ...(country !== undefined && { country }) }))

/** Rotates an exit and answers every step. */
export const rotateExit = async ({ client }: Having, id: string): Promise<ExitLine[]> =>
  all(await client.call('POST /exit/{id}/rotate', { id }))

/** An exit as the list has it. */
export const exitIn = async ({ client }: Having, id: string): Promise<ExitLink> => {
  const found = (await client.call('GET /exit')).links.find(link => link.id === id)
  if (!found) throw new Error(`there is no exit ${id}`)
  return found
}
