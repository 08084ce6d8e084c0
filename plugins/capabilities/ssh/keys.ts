import type { Duplex } from 'node:stream'
import type { ParsedKey } from 'ssh2'
import { refuse } from '../../../sdk/index.js'
import { namesOf } from '../../../sdk/node/programs/library.js'

/** The most bytes of a message of a client: what is signed at a sign-in takes about one KiB. */
const MOST_BYTES = 256 * 1024
const HEADER = 4
/** The requests that are served: to list the keys, and to sign (draft-ietf-sshm-ssh-agent). */
const SERVED: ReadonlySet<number | undefined> = new Set([11, 13])
const FAILURE = Buffer.from([0, 0, 0, 1, 5])

/** Few sandboxes have such connections, so the library is loaded on demand. */
const library = async () => namesOf(await import('ssh2'))

const EXPECTED = 'config.privateKey: expected a private key as ssh-keygen writes it'

/** Refuses a text that is no private key, or one that a passphrase protects. */
export const assertKey = async (text: string): Promise<void> => {
  const found = await parsedKey(text)
  if (!(found instanceof Error)) return
  if (/passphrase|encrypted/i.test(found.message))
    refuse('invalid', `${EXPECTED}, without a passphrase: ssh-keygen -p removes it from a copy of the key`)
  refuse('invalid', `${EXPECTED}, whole, with its first and last line`)
}

const parsedKey = async (text: string): Promise<ParsedKey | Error> => {
  const { utils } = await library()
  // The library's function takes a list, and answers a list for some forms.
  const found: ParsedKey | readonly ParsedKey[] | Error = utils.parseKey(`${text.trim()}\n`)
  const key = Array.isArray(found) ? (found as readonly ParsedKey[])[0] : (found as ParsedKey | Error)
  if (key === undefined) return new Error('no key')
  return key instanceof Error || key.isPrivateKey() ? key : new Error('a public key')
}

/**
 * Answers a client of an agent with one key: it may list the key and let it sign, and can do nothing else, so that the
 * key itself stays here.
 */
export const lendKey = async (client: Duplex, text: string): Promise<void> => {
  const key = await parsedKey(text)
  if (key instanceof Error) return void client.destroy()
  const { AgentProtocol } = await library()
  const agent = new AgentProtocol(false)
  client.once('close', () => agent.destroy())
  agent.on('error', () => client.destroy())
  agent.on('identities', request => agent.getIdentitiesReply(request, [key]))
  agent.on('sign', (request, asked, data, { hash }) => {
    const signature = key.getPublicSSH().equals(asked.getPublicSSH()) ? key.sign(data, hash) : new Error('another key')
    if (signature instanceof Error) agent.failureReply(request)
    else agent.signReply(request, signature)
  })
  agent.pipe(client)
  // The library loses its place after a request that it does not know, so it gets whole ones that it does.
  for await (const message of messagesOf(client))
    if (SERVED.has(message[HEADER])) agent.write(message)
    else client.write(FAILURE)
  agent.end()
}

/** The messages of a client of an agent, each with its length before it; ends where one is too long. */
async function* messagesOf(client: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let read = Buffer.alloc(0)
  for await (const piece of client) {
    read = Buffer.concat([read, piece])
    while (read.length >= HEADER) {
      const end = HEADER + read.readUInt32BE()
      if (end > MOST_BYTES) return
      if (read.length < end) break
      yield read.subarray(0, end)
      read = read.subarray(end)
    }
  }
}
