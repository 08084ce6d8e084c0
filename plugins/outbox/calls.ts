import { basename, dirname } from 'node:path'
import { realpath } from 'node:fs/promises'
import { refuse, type Context, type Handlers, type Host } from '../../sdk/index.js'
import { accessViewFor } from '../../sdk/node/access/asked-reach.js'
import { treeFor } from '../../sdk/node/access/caller-tree.js'
import { segmentsOf } from '../../sdk/node/files/paths.js'
import { publicAddress } from '../../sdk/node/pages/public-address.js'
import { record } from '../../sdk/node/record/record.js'
import type { OutboxCalls, PublishedEntry } from './contract.js'
import { OutboxListing, outboxUrl, urlBelow } from './listing.js'
import { publicationDigestOf, type Outbox, type Publication } from './outbox.js'
import { OUTBOX } from './public-folder.js'
import type { OutboxServing } from './serving.js'
import { entryBytes, type StoredEntry } from './stored-entry.js'
import type { Verdicts } from './verdicts.js'

const LISTED = 500
const MOST_LISTED = 2000
const CONTROL = /[\\\x00-\x1f\x7f]/

/** What the calls stand on. */
export interface OutboxCallDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'place' | 'log' | 'signal'>
  readonly outbox: Outbox
  readonly verdicts: Verdicts
  readonly serving: OutboxServing
  /** Notifies watchers of a changed path, or of all. */
  readonly published: (path?: string) => void
}

const countedIn = (files: StoredEntry['files']) => ({ files: files.length, bytes: entryBytes({ files }) })

/** Serves the calls of the group. */
export const outboxCalls = ({ host, outbox, verdicts, serving, published }: OutboxCallDeps): Handlers<OutboxCalls> => {
  const listing = new OutboxListing(outbox, verdicts)
  const urlNow = async (context: Pick<Context, 'http'>) =>
    outboxUrl(await publicAddress(host, context.http), outbox.book.slot)
  const assertOn = () => {
    if (host.place.publicPages.serve === 'off')
      refuse('conflict', 'this sandbox serves nothing in public: its deployment switched that off')
  }

  /** What would be published. */
  const checked = async (publication: Publication, context: Context): Promise<PublishedEntry> => {
    const copy = await outbox.check(publication, AbortSignal.any([context.signal, host.signal]))
    return { path: publication.as, digest: publicationDigestOf(copy), blocked: copy.blocked, ...countedIn(copy.files) }
  }

  const publish = async (publication: Publication, context: Context): Promise<PublishedEntry> => {
    assertOn()
    const { as, by, expiresAt = Infinity } = publication
    if (expiresAt <= Date.now()) refuse('unprocessable', 'expiresAt: expected a time to come, found one in the past')
    const signal = AbortSignal.any([context.signal, host.signal])
    const { entry, copy, revision } = await outbox.publish(publication, signal)
    verdicts.published(entry, revision)
    published(as)
    const index = entry.files.some(({ path }) => path === `${as}/index.html`)
    const below = (url: string | undefined) =>
      entry.isFolder ? index && url !== undefined && `${urlBelow(url, as)}/` : urlBelow(url, as)
    const address = await publicAddress(host, context.http)
    const url = below(outboxUrl(address, outbox.book.slot)) || undefined
    const shown = below(outboxUrl(address, '…')) || undefined
    await record(host, {
      ...{ type: 'outbox.published', actor: by, direction: 'out' },
      extra: { path: as, files: entry.files.length, ...(shown !== undefined && { url: shown }) },
    })
    return {
      path: as,
      ...(url !== undefined && { url }),
      ...countedIn(entry.files),
      blocked: copy.blocked,
      digest: publicationDigestOf(copy),
    }
  }

  return {
    'GET /public': async ({ limit = LISTED, after }, context) => {
      const { reach } = await publicAddress(host, context.http)
      const url = await urlNow(context)
      const page = await listing.page(await accessViewFor(host, context.caller), url, {
        limit: Math.min(limit, MOST_LISTED),
        ...(after !== undefined && { after }),
      })
      return { ...(url !== undefined && { url }), reach, ...page }
    },
    'POST /public/publish': async ({ path, as, agent, expiresAt, mode = 'apply', expect }, context) => {
      const segments = segmentsOf(path, { existing: true })
      const wrong = (field: string, expected: string): never =>
        refuse('invalid', `${field}: expected ${expected}`, { errors: [{ path: field, expected }] })
      if (segments[0] === OUTBOX) wrong('path', 'a path outside of public/, which holds what is published')
      const name = as ?? basename(segments.at(-1)!)
      if (CONTROL.test(name)) wrong('as', 'a name without backslashes and control characters')
      return (mode === 'check' ? checked : publish)(
        {
          ...{
            tree: await treeFor(host, agent, context),
            path: segments.join('/'),
            as: name,
            by: context.caller.actor,
          },
          source: segments.join('/'),
          ...(expiresAt !== undefined && { expiresAt }),
          ...(expect !== undefined && { expect }),
        },
        context,
      )
    },
    'POST /public/unpublish': async ({ path }, context) => {
      const gone = segmentsOf(path, { existing: true }).join('/')
      if (await outbox.withdraw(gone)) {
        published(gone)
        await record(host, { type: 'outbox.withdrawn', extra: { path: gone } }, context)
      }
      return { ok: true }
    },
    'POST /public/rotate': async (_, context) => {
      assertOn()
      await outbox.book.rotate()
      published()
      await record(host, { type: 'outbox.rotated' }, context)
      const url = await urlNow(context)
      return { ...(url !== undefined && { url }) }
    },
    'GET /p/{slot}/{path}': ({ slot, path }, context) => serving.answer(slot, path, context),
    'outbox.publish': async ({ place, as, by, expiresAt }, context) => {
      const real = await realpath(place)
      const tree = { root: dirname(real), reach: undefined, readsGit: false }
      return publish({ tree, path: basename(real), as, by, ...(expiresAt !== undefined && { expiresAt }) }, context)
    },
  }
}
