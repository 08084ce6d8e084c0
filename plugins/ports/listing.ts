import type { Caller, Host } from '../../sdk/index.js'
import { accessViewFor } from '../../sdk/node/access/asked-reach.js'
import { CurrentMasker } from '../../sdk/node/access/value-masker.js'
import type { Masker } from '../../sdk/node/access/masker.js'
import { redacted } from '../../sdk/node/access/redact.js'
import type { PortEntry } from './contract.js'
import type { ForwardSlot } from './preview/store.js'
import type { ScannedPort } from './scan/scan.js'

const LONGEST = 2_000

/** The dependencies of the list. */
export interface PortListingDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'place'>
  /** The address of a port, if it is forwarded. */
  readonly forwarded: (port: ScannedPort) => { readonly slot: ForwardSlot; readonly url?: string } | undefined
}

/** The ports as `GET /ports` shows them, without stored values. */
export class PortListing {
  readonly #deps: PortListingDeps
  readonly #masker: CurrentMasker

  constructor(deps: PortListingDeps) {
    this.#deps = deps
    this.#masker = new CurrentMasker(deps.host)
  }

  /** The entries that a caller may see; without a caller, all. */
  async of(ports: readonly ScannedPort[], caller?: Caller): Promise<PortEntry[]> {
    const { masker } = await this.#masker.now()
    const view = caller && (await accessViewFor(this.#deps.host, caller))
    const entries: PortEntry[] = []
    for (const port of ports) {
      if (port.own) continue
      const limited = view?.reach !== undefined
      // What is outside of the workspace is not in any area.
      if (limited && (port.cwd === undefined || port.cwd.startsWith('/') || !(await view.sees(port.cwd)))) continue
      entries.push(this.#entry(port, masker, !limited))
    }
    const rank = ({ kind }: PortEntry) => (kind === 'workspace' ? 0 : 1)
    const id = ({ conversationId = '' }: PortEntry) => conversationId
    return entries.sort((a, b) => rank(a) - rank(b) || a.port - b.port || (id(a) < id(b) ? -1 : 1))
  }

  #entry(scanned: ScannedPort, masker: Masker, whole: boolean): PortEntry {
    const { port, host, forwardable, kind, title, purpose, origin, holder, cwd, session, conversationId } = scanned
    const forward = this.#deps.forwarded(scanned)
    const command = whole && holder ? cleaned(holder.args.join(' '), masker) : ''
    return {
      port,
      host,
      forwardable,
      kind,
      title: cleaned(title, masker),
      purpose: cleaned(purpose, masker),
      origin,
      ...(holder && { pid: holder.pid }),
      ...(command && { command }),
      ...(cwd !== undefined && { cwd }),
      ...(session !== undefined && { session }),
      ...(conversationId !== undefined && { conversationId }),
      forwarded: forward !== undefined,
      ...(forward?.url !== undefined && { previewUrl: forward.url }),
    }
  }
}

const cleaned = (text: string, masker: Masker): string => redacted(masker.mask(text)).toWellFormed().slice(0, LONGEST)
