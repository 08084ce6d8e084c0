import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { needProgram, ownEnv, run } from '../programs/run.js'
import type { ServerAddress } from './remote-address.js'

/** The credential for a server. */
export interface RemoteCredential {
  readonly user: string
  readonly password: string
}

/** How git gets a credential: settings for its command line, and variables; neither contains the credential. */
export interface CredentialWay extends AsyncDisposable {
  readonly settings: readonly string[]
  readonly env: { readonly [name: string]: string }
  /** Keeps what the server showed of itself for the first time. */
  pin?(): Promise<void>
}

const VARIABLE = 'SANDBOX_GIT_CREDENTIAL'
/** The capacity of a pipe without a reader (pipe(7)). */
const PIPE_BYTES = 65_536
const MOST_ANSWERS = 32

/** Reads one answer from the pipe. The credential is used only by builtins of the shell, never as an argument. */
const HELPER =
  `!f() { test "$1" = get || return 0; { IFS= read -r u && IFS= read -r p; } < "$${VARIABLE}"`
  + ` && printf '%s\\n%s\\n' "$u" "$p"; }; f`

/** A pipe that holds an answer for as many readers as it can; nothing is written to a disk. */
export const answerPipe = async (path: string, answer: Buffer): Promise<AsyncDisposable> => {
  const made = await run(await needProgram('mkfifo'), ['-m', '600', path], { cwd: '/', env: await ownEnv() })
  if (made.code !== 0) throw new Error(`mkfifo ended with ${made.code}`)
  // Open for both ways: nobody waits for a reader, and the pipe is over when it is closed here.
  const pipe = await open(path, constants.O_RDWR | constants.O_NONBLOCK)
  const answers = Math.min(MOST_ANSWERS, Math.floor(PIPE_BYTES / answer.length))
  await pipe.write(Buffer.concat(Array.from({ length: answers }, () => answer)))
  return { [Symbol.asyncDispose]: () => pipe.close() }
}

/**
 * Hands a credential to git for one server: through a pipe in a folder that only this git sees, for this host and port
 * alone. A killed daemon leaves an empty pipe.
 */
export const credentialPipe = async (
  folder: string,
  { kind, host, port }: ServerAddress,
  { user, password }: RemoteCredential,
): Promise<CredentialWay> => {
  const path = join(folder, 'credential')
  const pipe = await answerPipe(path, Buffer.from(`username=${user}\npassword=${password}\n`))
  const name = host.includes(':') ? `[${host}]` : host
  return {
    settings: ['-c', `credential.${kind}://${name}:${port}.helper=${HELPER}`],
    env: { [VARIABLE]: path },
    [Symbol.asyncDispose]: () => pipe[Symbol.asyncDispose](),
  }
}
