import type { tags } from 'typia'
import type { Millis } from '../../../sdk/types.js'

/** A forge that can report results. */
export type ForgeHost = 'github' | 'gitlab' | 'forgejo' | 'gitea'

/** Where a forge reports results, and the secret with which it proves that it is the forge. */
export interface CiHook {
  url: string
  secret: string
  createdAt: Millis
}
/** The same, with the last report that was accepted. */
export interface RevealedCiHook extends CiHook {
  lastUsedAt?: Millis
}

type Signature = string & tags.MaxLength<400>

/** A report as it arrives: its bytes in base64, and the headers that say what it is and prove it. */
export interface CiReport {
  host: string & tags.MaxLength<40>
  /** The secret itself, of a sender that can sign nothing. */
  token?: Signature
  'x-hub-signature-256'?: Signature
  'x-forgejo-signature'?: Signature
  'x-gitea-signature'?: Signature
  'x-gitlab-token'?: Signature
  'x-github-event'?: Signature
  'x-forgejo-event'?: Signature
  'x-gitea-event'?: Signature
  'x-gitlab-event'?: Signature
  body?: string
}

/** Reports of forges, and the secrets that prove them. */
export interface CiHookCalls {
  /**
   * Report a finished run, as a forge does: a workflow run, a pipeline or an action run.
   *
   * GitHub signs with `x-hub-signature-256`, Forgejo and Gitea with `x-forgejo-signature`, `x-gitea-signature` or the
   * first, GitLab sends the secret in `x-gitlab-token`; a sender that can do none of these sends it as the query field
   * `token` or `authorization: Bearer`. Reports of other projects, of unfinished runs and of other events are ignored,
   * and one that was sent before or is older than what is known changes nothing. What was answered survives the end of
   * the daemon; automations start after the answer.
   *
   * - 400: the body is not JSON, or over 64 levels
   * - 401: the signature or the secret is missing or wrong
   * - 404: no such forge
   * - 413: over 1 MiB
   * - 429: more than 600 reports of this forge a minute
   */
  'POST /ci/webhook/{host}'(input: CiReport): { ok: true; ignored?: true }

  /**
   * Read where a forge reports results and its secret, which is made on first use, to enter it in the forge.
   *
   * - 404: no such forge
   */
  'GET /ci/webhook/{host}'(input: { host: string & tags.MaxLength<40> }): RevealedCiHook

  /**
   * Make a new secret for the reports of a forge; the old one stops working at once.
   *
   * Webhooks that this sandbox registered get the new one at once; a repository whose forge refuses that says so in
   * `hookWarning`.
   *
   * - 404: no such forge
   */
  'POST /ci/webhook/{host}/rotate'(input: { host: string & tags.MaxLength<40> }): CiHook
}
