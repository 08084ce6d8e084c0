import { Refusal, refuse, type Caller, type Context, type Handlers, type Host } from '../../../sdk/index.js'
import { openExisting, openFile, openPath, shownPath } from '../../../sdk/node/files/open-path.js'
import { attachmentNamed } from '../../../sdk/node/files/media-type.js'
import { servedBytes } from '../files/bytes.js'
import { treesFor, treeWith } from '../files/calls.js'
import { treeFor, type CallerTree } from '../../../sdk/node/access/caller-tree.js'
import type { TransferCalls } from './contract.js'
import { TransferTickets } from './tickets.js'
import { planZip, zipName, zipOf, type ZipPlan } from './zip.js'

/** The file of a ticket. */
interface BoundFile {
  readonly agent?: string
  /** The requested path, and the real one. */
  readonly named: string
  readonly asked?: string
  readonly path: string
  readonly ino: number
  readonly dev: number
}

const MEDIA_MS = 8 * 3_600_000
const DOWNLOAD_MS = 600_000
const DOWNLOADS = 2
const RETRY_SECONDS = 5

/** A ticket is in the address, so it needs an encrypted connection. */
const assertPrivate = ({ http }: Context): void => {
  if (http?.plain) refuse('forbidden', 'a ticket is taken over an encrypted connection only: use https')
}

/** Serves files and folders to clients that cannot send headers. */
export const transferCalls = (host: Host): Handlers<TransferCalls> => {
  const media = new TransferTickets<BoundFile>(MEDIA_MS)
  const downloads = new TransferTickets<ZipPlan & { readonly agent?: string; readonly filename: string }>(DOWNLOAD_MS)
  host.on('credential.ended', ended => {
    media.end(ended)
    downloads.end(ended)
  })
  let running = 0

  /** The tree of a ticket, as the person who minted it sees it now. */
  const treeOfTicket = (agent: string | undefined, caller: Caller): Promise<CallerTree> =>
    treeFor(host, agent, { caller }).catch(error =>
      error instanceof Refusal && error.reason === 'conflict'
        ? refuse('not-found', 'what the ticket stands for is gone')
        : Promise.reject(error),
    )

  return {
    'POST /workspace/media-ticket': async ({ agent, path }, context) => {
      const trees = await treesFor(host, agent, context)
      const tree = (await treeWith(trees, path)) ?? trees[0]!
      await using found = await openExisting(tree, path)
      await (await openFile(found, path)).close()
      const { ino, dev } = found.stats
      const { conversationId } = tree
      return media.mint(context.caller, {
        named: path,
        path: found.path,
        ino,
        dev,
        ...(conversationId !== undefined && { agent: conversationId }),
        ...(agent !== undefined && { asked: agent }),
      })
    },

    'GET /workspace/media': async ({ ticket, path, agent, download = false }, context) => {
      assertPrivate(context)
      const { what, caller } = media.redeem(ticket)
      if ((path !== undefined && path !== what.named) || (agent !== undefined && agent !== what.asked))
        refuse('unauthenticated', `the ticket is for another file than ${shownPath(path ?? what.named)}`)
      const tree = await treeOfTicket(what.agent, caller)
      await using found = await openPath(tree, what.path)
      if (!found || found.stats.ino !== what.ino || found.stats.dev !== what.dev)
        return refuse('not-found', `${shownPath(what.named)} is gone, or another file has its name`)
      await (await openFile(found, what.named)).close()
      return await servedBytes(found, {
        http: context.http,
        saved: download ? 'all' : 'active',
        again: () => openExisting(tree, what.path),
      })
    },

    'POST /workspace/download-ticket': async ({ agent, paths, includeIgnored = false }, context) => {
      const tree = await treeFor(host, agent, context)
      const plan = await planZip(tree, paths, includeIgnored)
      const filename = zipName(plan)
      const held = { ...plan, filename, ...(tree.conversationId !== undefined && { agent: tree.conversationId }) }
      return { ...downloads.mint(context.caller, held), filename }
    },

    'GET /workspace/download': async ({ ticket }, context) => {
      assertPrivate(context)
      const { what, caller } = downloads.redeem(ticket)
      if (running >= DOWNLOADS)
        refuse('too-many', `${DOWNLOADS} downloads are running: wait for one to end`, { retryAfter: RETRY_SECONDS })
      const tree = await treeOfTicket(what.agent, caller)
      const data = async function* () {
        running += 1
        try {
          yield* zipOf(tree, what)
        } finally {
          running -= 1
        }
      }
      return {
        'content-type': 'application/zip' as const,
        headers: { 'content-disposition': attachmentNamed(what.filename), 'cache-control': 'no-store' },
        data: data(),
      }
    },
  }
}
