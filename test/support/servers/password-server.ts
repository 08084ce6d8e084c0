import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import ssh2 from 'ssh2'
import type { Test } from 'tap'
import { sshKey } from '../ssh-server.js'

/** A server for ssh that lets one user in with a password, and answers each command with its own text. */
export const passwordServer = async (t: Pick<Test, 'teardown'>, folder: string, user: string, password: string) => {
  const ran: string[] = []
  const server = new ssh2.Server({ hostKeys: [sshKey(folder, 'host-key').private] }, client => {
    client.on('error', () => {})
    client.on('authentication', asked => {
      if (asked.method === 'password' && asked.username === user && asked.password === password) asked.accept()
      else asked.reject(['password'])
    })
    client.on('session', accept =>
      accept().on('exec', (take, _, { command }) => {
        ran.push(command)
        const stream = take()
        stream.write(`ran ${command}\n`)
        stream.exit(0)
        stream.end()
      }),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { ran, port: (server.address() as AddressInfo).port }
}
