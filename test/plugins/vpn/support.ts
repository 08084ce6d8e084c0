import type { ApplyFrame, Capability } from '../../../plugins/capabilities/contract.js'
import type { VpnLine } from '../../../plugins/vpn/contract.js'
import type { Client } from '../../../sdk/client.js'

/** Adds a tunnel as a connection and answers every step. */
export const add = async (
  { client }: { readonly client: Client },
  id: string,
  config: { [field: string]: string },
): Promise<ApplyFrame[]> => {
  const frames: ApplyFrame[] = []
  const given: Capability = { id, kind: 'vpn', config }
  for await (const frame of await client.call('POST /capabilities', given)) frames.push(frame)
  return frames
}

/** Dials a tunnel and answers every step. */
export const dial = async ({ client }: { readonly client: Client }, id: string, otp?: string): Promise<VpnLine[]> => {
  const lines: VpnLine[] = []
  const input = { id, ...(otp !== undefined && { otp }) }
  for await (const line of await client.call('POST /vpn/{id}/connect', input)) lines.push(line)
  return lines
}
