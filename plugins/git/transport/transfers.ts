import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Host } from '../../../sdk/index.js'
import type { CredentialWay } from '../../../sdk/node/transport/credential-pipe.js'
import { KnownHosts } from '../../../sdk/node/transport/known-hosts.js'
import type { RemoteAddress, ServerAddress } from '../../../sdk/node/transport/remote-address.js'
import {
  RemoteGit,
  type TransferAnswer,
  type TransferOrder,
  type TransferTimes,
  type WallBase,
} from '../../../sdk/node/transport/remote-git.js'
import type { RemoteFailure } from '../../../sdk/node/transport/remote-words.js'
import { missingSshProgram, missingSshSentence, sshLogin } from '../../../sdk/node/transport/ssh-login.js'
import type { RepoGit } from '../repositories/repo-git.js'
import { ScratchTransfer } from './scratch-repo.js'

/** The maximum length of a private key. */
const MOST_KEY = 16_384

/** Runs git between repositories and remotes, from a git dir of the daemon's own. */
export class Transfers {
  readonly #host: Pick<Host, 'call' | 'serves' | 'place' | 'signal'>
  readonly #wall: WallBase
  readonly #git: RemoteGit

  constructor(host: Pick<Host, 'call' | 'serves' | 'place' | 'signal'>, wall: WallBase, times?: TransferTimes) {
    this.#host = host
    this.#wall = wall
    const known = new KnownHosts(host.place.folder)
    this.#git = new RemoteGit({
      host,
      wall,
      passwordFor: async server => this.#stored(server.host, 'password'),
      ssh: async (server, folder, address) => {
        const key = await this.#stored(server.host, 'key')
        return sshWay(folder, server, address, key !== undefined && key.length <= MOST_KEY ? key : undefined, known)
      },
      ...(times && { times }),
    })
  }

  /** The folder for files of running transfers. */
  get folder(): string {
    return join(this.#host.place.folder, 'transfers')
  }

  /** Removes the files that a killed daemon left. */
  async sweep(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true })
    await mkdir(this.folder, { recursive: true, mode: 0o700 })
  }

  /** Runs `work` with a temporary git dir over the objects of a repository. */
  async with<T>(repository: RepoGit, work: (scratch: ScratchTransfer) => Promise<T>): Promise<T> {
    await using scratch = await ScratchTransfer.open(this.folder, repository)
    return await work(scratch)
  }

  /** Runs git between a repository and a remote, from its temporary git dir. */
  inScratch(
    repository: RepoGit,
    scratch: ScratchTransfer,
    address: RemoteAddress,
    args: (url: string) => readonly string[],
    signal?: AbortSignal,
  ): Promise<TransferAnswer> {
    const { common, dir } = repository.place
    const exposed = [common].filter(path => path.startsWith(`${this.#wall.data}/`))
    return this.run({ address, args, folder: scratch.dir, dir, env: scratch.env, exposed, ...(signal && { signal }) })
  }

  /** Runs git against a remote. */
  run(order: TransferOrder): Promise<TransferAnswer> {
    return this.#git.run(order)
  }

  /** The stored password or private key that is bound to a host. */
  async #stored(host: string, form: 'password' | 'key'): Promise<string | undefined> {
    if (!(await this.#host.serves('secrets.forHost'))) return undefined
    return (await this.#host.call('secrets.forHost', { host, form, lane: 'code', detail: `git ${host}` })).value
  }
}

/** Git's way to a server over ssh; a failure where this machine has no ssh. */
const sshWay = async (
  folder: string,
  server: ServerAddress,
  address: string,
  key: string | undefined,
  known: KnownHosts,
): Promise<CredentialWay | { readonly failure: RemoteFailure }> => {
  const missing = await missingSshProgram()
  if (missing !== undefined) return { failure: { code: 'other', reason: missingSshSentence(missing) } }
  const secret = key === undefined ? undefined : ({ kind: 'key', value: key } as const)
  const { command, env, ...login } = await sshLogin(folder, server, address, secret, known)
  return { ...login, settings: [], env: { ...env, GIT_SSH_COMMAND: command, GIT_SSH_VARIANT: 'ssh' } }
}
