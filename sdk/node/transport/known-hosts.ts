import { join } from 'node:path'
import { KeyedMutex } from '../concurrency/keyed-mutex.js'
import { failpoint } from '../failpoint.js'
import { readPlain, writeAtomic } from '../files/files.js'

/** The name of the file that holds the host keys. */
export const KNOWN_HOSTS = 'known-hosts'

const LINE = /^(\S+) ([a-z][a-z0-9@.-]+) ([A-Za-z0-9+/]+={0,3})$/
const MOST_BYTES = 16 * 1024 * 1024
const MOST_KEYS = 8

/** The host keys of servers as they were first seen, in the form of OpenSSH (sshd(8)). */
export class KnownHosts {
  readonly #path: string
  readonly #mutex = new KeyedMutex()

  constructor(folder: string) {
    this.#path = join(folder, KNOWN_HOSTS)
  }

  /** The lines of a server; empty: it was never seen. */
  linesOf(name: string): string[] {
    return this.#lines().filter(line => LINE.exec(line)?.[1] === name)
  }

  /** Keeps the keys that a server showed first; what is kept of it already stays. */
  async pin(name: string, shown: string): Promise<void> {
    const found = shown.split('\n').filter(line => LINE.exec(line)?.[1] === name)
    if (found.length === 0) return
    await this.#mutex.with(KNOWN_HOSTS, async () => {
      if (this.linesOf(name).length > 0) return
      const lines = [...this.#lines(), ...found.slice(0, MOST_KEYS)]
      await writeAtomic(this.#path, lines.map(line => `${line}\n`).join(''))
      failpoint('known-hosts.kept')
    })
  }

  #lines(): string[] {
    return (readPlain(this.#path, MOST_BYTES) ?? '').split('\n').filter(Boolean)
  }
}
