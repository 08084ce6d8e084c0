import type { ExtensionProcessStatus } from '../../../sdk/node/extension/protocol.js'
import type { Ok } from '../../../sdk/types.js'
import type { ExtensionId } from '../listing/contract.js'
import type { ExtensionSlug } from '../manifest/manifest.js'

export type { ExtensionProcessStatus } from '../../../sdk/node/extension/protocol.js'

/** The background programs of extensions. */
export interface ProcessCalls {
  /**
   * Show how one declared program stands, read from its real process.
   *
   * - 404: no such extension, or it declares no such process
   */
  'GET /extensions/{id}/processes/{name}'(input: { id: ExtensionId; name: ExtensionSlug }): ExtensionProcessStatus

  /**
   * Start a declared program with its port and secrets; answers when it runs.
   *
   * It runs behind the wall of the sandbox's programs, its code read-only, in the terminal session that its status
   * names: maintainers attach to it, and its output is in the log of that terminal. Where tmux is installed it outlives
   * the daemon: the next one takes it over, or starts it anew if it has secrets or a credential. Its restart rule
   * starts it again after 1 s, doubling to 60 s; after 5 ends in 10 minutes it stays quarantined. One that runs already
   * is left alone. Where the manifest has `permissions.daemon`, the program finds the address of the sandbox in
   * `SANDBOX_DAEMON` and a credential for exactly these calls in `SANDBOX_EXTENSION_TOKEN`: it sends it in the header
   * `x-sandbox-extension`, and it is valid until the program ends.
   *
   * - 404: no such extension, or it declares no such process
   * - 409: the extension is switched off or waits for approval, or a file or secret is not there
   * - 501: the program is not installed, or this machine has no wall
   * - 503: no free port
   */
  'POST /extensions/{id}/processes/{name}/start'(input: { id: ExtensionId; name: ExtensionSlug }): Ok

  /**
   * End a program and its children: SIGTERM, after 5 s SIGKILL.
   *
   * It stays stopped until it is started or the daemon starts anew, also with `autoStart`. Works while the extension is
   * switched off.
   *
   * - 404: no such extension, or it declares no such process
   */
  'POST /extensions/{id}/processes/{name}/stop'(input: { id: ExtensionId; name: ExtensionSlug }): Ok
}
