import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { writeAtomic } from '../../../../sdk/node/files/files.js'
import { systemAuthorities, type Authority } from '../../../../sdk/node/network/authority.js'

/** The files by which programs use their network. None outlives the daemon, and none holds a secret. */
export class NetworkFiles {
  readonly #folder: string
  readonly #written = new Map<string, Promise<string>>()
  readonly #authorities = new WeakMap<Authority, Promise<string>>()

  constructor(folder: string) {
    this.#folder = folder
  }

  /** A file in which names of hosts are resolved at an address. */
  resolver(address: string): Promise<string> {
    const written = this.#written.get(address) ?? this.#write(`resolv-${address}.conf`, `nameserver ${address}\n`)
    this.#written.set(address, written)
    written.catch(() => this.#written.delete(address))
    return written
  }

  /** A file with the authorities that programs trust on this machine, and that of a conversation's network. */
  authorities(id: string, authority: Authority): Promise<string> {
    const written =
      this.#authorities.get(authority)
      ?? this.#write(`authorities-${id}.pem`, `${systemAuthorities().trimEnd()}\n${authority.certificate}`)
    this.#authorities.set(authority, written)
    written.catch(() => this.#authorities.delete(authority))
    return written
  }

  /** A file with the authorities that programs trust on this machine, and those that the deployment names. */
  deploymentAuthorities(): Promise<string> {
    const written = this.#written.get('authorities') ?? this.#write('authorities.pem', systemAuthorities())
    this.#written.set('authorities', written)
    written.catch(() => this.#written.delete('authorities'))
    return written
  }

  /** Removes the files of a deleted conversation. */
  async forget(id: string): Promise<void> {
    await rm(join(this.#folder, `authorities-${id}.pem`), { force: true })
  }

  /** Removes the files of an earlier daemon. */
  async sweep(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true })
  }

  async #write(name: string, text: string): Promise<string> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    const path = join(this.#folder, name)
    await writeAtomic(path, text, { mode: 0o644 })
    return path
  }
}
