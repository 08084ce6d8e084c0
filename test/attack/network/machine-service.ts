import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

/** A service of the machine without a sign-in, and the paths that were asked of it. */
export const machineService = async (t: Pick<Test, 'teardown'>): Promise<{ seen: string[]; port: number }> => {
  const seen: string[] = []
  const server = createServer(({ url = '' }, answer) => {
    seen.push(url)
    answer.end('a service of the machine')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { seen, port: (server.address() as AddressInfo).port }
}
