import { refuse, Refusal, type Context, type Handlers, type Host } from '../../sdk/index.js'
import { limitsOf } from '../../sdk/node/access/access-view.js'
import { Budget } from '../../sdk/node/access/budget.js'
import type { CurrentMasker } from '../../sdk/node/access/value-masker.js'
import { publicAddress } from '../../sdk/node/pages/public-address.js'
import { servedPublicFile } from '../../sdk/node/pages/served-file.js'
import { record } from '../../sdk/node/record/record.js'
import type { ShareCalls, SharedConversation, SharePageBytes } from './contract.js'
import { pageDigestOf, snapshotOf, type PageSnapshot, type SnapshotAsked } from './page/snapshot.js'
import { newShareId, type Shares, type StoredShare } from './shares.js'

const REQUESTS = 300
const MOST_PREVIEW = 4 * 1024 * 1024
const POLICY = [
  ...["default-src 'none'", "img-src 'self'", "style-src 'unsafe-inline'"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join('; ')
const SANDBOXED = '; sandbox allow-popups'

/** What the calls stand on. */
export interface ShareCallDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'place' | 'log'>
  readonly shares: Shares
  readonly secrets: CurrentMasker
  /** Notifies watchers of a changed share. */
  readonly published: (id: string) => void
}

/** Serves the calls of the group. */
export const shareCalls = ({ host, shares, secrets, published }: ShareCallDeps): Handlers<ShareCalls> => {
  const budget = new Budget(REQUESTS)
  const isOn = host.place.publicPages.serve !== 'off'
  const assertLater = (expiresAt: number | null | undefined) => {
    if (typeof expiresAt === 'number' && expiresAt <= Date.now())
      refuse('unprocessable', 'expiresAt: expected a time to come, found one in the past')
  }
  const taken = (asked: SnapshotAsked, context: Context) => snapshotOf(host, secrets, asked, context)

  /** Refuses a page that is not the one that somebody looked at. */
  const assertSeen = (snapshot: PageSnapshot, expect: string | undefined, about: string) => {
    const digest = expect === undefined ? undefined : pageDigestOf(snapshot)
    if (digest === expect) return
    refuse('conflict', `the page of ${about} is not what was seen: preview it again, then share it`, {
      fields: { digest, messages: snapshot.messages },
    })
  }

  const shown = async (share: StoredShare, rows: number | undefined, context: Context): Promise<SharedConversation> => {
    const { version: _version, rows: before, files: _files, expired: _expired, ...rest } = share
    const { base } = await publicAddress(host, context.http)
    return {
      ...rest,
      opened: shares.opened(share.id),
      stale: rows !== undefined && rows > before,
      ...(base !== undefined && { url: `${base}/s/${share.id}/` }),
    }
  }

  /** The rows of a conversation; undefined: there is none that the caller may see. */
  const rowsOf = async (id: string, context: Context): Promise<number | undefined> => {
    try {
      return (await host.call('agent.record', { id, limit: 1 }, { as: context })).total
    } catch (error) {
      if (Refusal.from(error).reason === 'not-found') return undefined
      throw error
    }
  }

  const noted = async (what: string, share: StoredShare, context: Context): Promise<void> => {
    published(share.id)
    const { conversationId, title, detail } = share
    await record(host, { type: `share.${what}`, conversationId, title, extra: { detail } }, context)
  }

  return {
    'GET /share': async ({ conversationId }, context) => {
      const found: SharedConversation[] = []
      const rows = new Map<string, number | undefined>()
      for (const share of shares.all) {
        if (conversationId !== undefined && share.conversationId !== conversationId) continue
        const { conversationId: of } = share
        if (!rows.has(of)) rows.set(of, await rowsOf(of, context))
        const total = rows.get(of)
        if (total !== undefined || limitsOf(context.caller) === undefined)
          found.push(await shown(share, total, context))
      }
      return { shares: found }
    },
    'POST /share/preview': async (asked, context) => {
      const { html, pictures, messages, redactions, dropped, title } = await taken(asked, context)
      const cut = html.length > MOST_PREVIEW
      return {
        ...{ title, detail: asked.detail, messages, redactions, dropped: [...dropped] },
        pictures: pictures.map(({ path, bytes }) => ({ path, sizeBytes: bytes.length })),
        // The cut may be within a character.
        html: cut ? html.toString('utf8', 0, MOST_PREVIEW - 4).replace(/\ufffd+$/, '') : html.toString(),
        truncated: cut,
        digest: pageDigestOf({ html, pictures }),
      }
    },
    'POST /share': async ({ expiresAt, expect, ...asked }, context) => {
      if (!isOn) refuse('conflict', 'this sandbox serves nothing in public: its deployment switched that off')
      assertLater(expiresAt)
      if (asked.title.trim() === '') refuse('invalid', 'title: expected one with a visible character')
      const snapshot = await taken(asked, context)
      assertSeen(snapshot, expect, asked.conversationId)
      const share = await shares.keep(
        {
          ...asked,
          ...{ id: newShareId(snapshot.title), title: snapshot.title, sharedAt: Date.now() },
          sharedBy: context.caller.actor,
          ...(expiresAt !== undefined && { expiresAt }),
        },
        snapshot,
        true,
      )
      await noted('created', share, context)
      return shown(share, snapshot.rows, context)
    },
    'POST /share/update': async ({ id, expiresAt, expect }, context) => {
      const { expiresAt: until, expired: _, ...before } = shares.get(id)
      assertLater(expiresAt)
      const end = expiresAt === undefined ? until : (expiresAt ?? undefined)
      const snapshot = await taken(before, context)
      assertSeen(snapshot, expect, before.conversationId)
      const share = await shares.keep(
        { ...before, sharedAt: Date.now(), ...(end !== undefined && { expiresAt: end }) },
        snapshot,
        false,
      )
      await noted('updated', share, context)
      return shown(share, snapshot.rows, context)
    },
    'POST /share/remove': async ({ id }, context) => {
      const share = shares.find(id)
      const removed = share !== undefined && (await shares.remove(id))
      if (removed) await noted('removed', share, context)
      return { ok: true, removed }
    },
    'GET /s/{id}/{path}': async ({ id, path }, { http, signal }) => {
      budget.spend(http?.address ?? '')
      const found = isOn ? await shares.open(id, path) : undefined
      if (!found) return refuse('not-found', 'nothing is shared there')
      const { file, handle } = found
      const answer = await servedPublicFile(
        {
          ...file,
          headers: {
            'content-security-policy': http?.publicHost ? POLICY : POLICY + SANDBOXED,
            'cross-origin-resource-policy': 'cross-origin',
          },
          close: () => handle.close(),
          read: async function* ({ first, last }) {
            if (path === '') shares.countOpened(id)
            yield* handle.createReadStream({ start: first, end: last, autoClose: false }) as AsyncIterable<Buffer>
          },
        },
        http,
        signal,
      )
      return answer as typeof answer & SharePageBytes
    },
  }
}
