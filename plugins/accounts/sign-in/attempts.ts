import type { Files, Log } from '../../../sdk/index.js'
import type { ProviderSignIn } from '../contract.js'

/** What an attempt proves itself with; it never leaves the daemon. */
export interface SignInProof {
  readonly verifier?: string
  readonly state?: string
  readonly redirectUri?: string
  readonly deviceCode?: string
  readonly intervalMs?: number
  /** The person's own client, where the definition names none. */
  readonly clientId?: string
}
/** An attempt to sign in, as it is kept: encrypted while it has a proof. */
export interface SignInAttempt extends ProviderSignIn {
  /** Whose attempt it is. */
  readonly by: string
  readonly label?: string
  readonly proof?: SignInProof
}

const FOLDER = 'pending/'
const SHOWN_MS = 3_600_000

/** The attempts to sign in of the last hour. */
export class SignInAttempts {
  readonly #files: Files
  readonly #log: Pick<Log, 'warn'>
  readonly #attempts = new Map<string, SignInAttempt>()

  constructor(files: Files, log: Pick<Log, 'warn'>) {
    this.#files = files
    this.#log = log
  }

  async load(): Promise<void> {
    for (const name of await this.#files.list(FOLDER)) {
      const attempt = await this.#files.read<SignInAttempt>(name).catch(() => undefined)
      if (attempt) this.#attempts.set(attempt.handshake, attempt)
      else await this.#files.remove(name)
    }
    await this.sweep()
  }

  get(handshake: string): SignInAttempt | undefined {
    return this.#attempts.get(handshake)
  }

  get all(): SignInAttempt[] {
    return [...this.#attempts.values()]
  }

  /** Sets an attempt; durable when it returns. */
  async set(attempt: SignInAttempt): Promise<SignInAttempt> {
    this.#attempts.set(attempt.handshake, attempt)
    await this.#files.write(FOLDER + attempt.handshake, attempt)
    return attempt
  }

  /** Forgets what began more than an hour ago and is over. */
  async sweep(): Promise<void> {
    const old = this.all.filter(({ startedAt, proof }) => !proof && Date.now() - startedAt > SHOWN_MS)
    for (const { handshake } of old) {
      this.#attempts.delete(handshake)
      await this.#files
        .remove(FOLDER + handshake)
        .catch(error => this.#log.warn('forgetting a sign-in failed', { error: String(error) }))
    }
  }
}

/** What people see of an attempt. */
export const shownAttempt = ({ by: _by, label: _label, proof: _proof, ...shown }: SignInAttempt): ProviderSignIn => ({
  ...shown,
})
