import { once } from 'node:events'
import { createServer } from 'node:net'

/** A port of this machine on which nothing listens: the given one if it is free, else any. */
export const freePort = async (wanted = 0): Promise<number> => {
  const server = createServer()
  server.listen(wanted, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch (error) {
    if (wanted === 0) throw error
    return freePort()
  }
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}
