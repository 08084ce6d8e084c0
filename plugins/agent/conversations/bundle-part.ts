import { readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Host } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { handOverFolder, takeReturned } from '../../../sdk/node/files/moves.js'
import { segmentsOf } from '../../../sdk/node/files/paths.js'
import type { BundlePart } from '../../system/contract.js'
import { usualBranch } from '../copies/branch-name.js'
import type { Anchor } from './anchors.js'
import { agent, type Conversation } from '../contract.js'
import type { Settled } from './transcripts.js'

/** One exported conversation: its stored fields, its settled record, and its checkpoints. */
interface ExportedConversation {
  readonly conversation: Conversation
  readonly settled: readonly Settled[]
  readonly anchors: readonly Anchor[]
}

type PartHost = Pick<Host, 'journal' | 'store' | 'place' | 'log'>

const GROUP = 'agent'
const VERSION = 1
const ID = /^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$/
const COMMIT = /^[0-9a-f]{40}([0-9a-f]{24})?$/
const recordOf = (id: string) => `transcripts/${id}`
const statesOf = (id: string) => `anchors/${id}`

/** Exports every conversation for a backup. */
export const exportConversations = async (
  { place, journal }: PartHost,
  conversations: readonly Conversation[],
): Promise<BundlePart> => {
  const folder = await handOverFolder(place.folder)
  const files: BundlePart['files'] = []
  for (const conversation of conversations) {
    const { id, updatedAt } = conversation
    const handed: ExportedConversation = {
      conversation,
      settled: await journal.read(recordOf(id)),
      anchors: await journal.read(statesOf(id)),
    }
    const path = join(folder, `${id}.json`)
    await writeFile(path, JSON.stringify(handed), { mode: 0o600 })
    files.push({ name: `${id}.json`, path, at: updatedAt })
  }
  return { group: GROUP, version: VERSION, files }
}

/**
 * Imports restored conversations, which replace all existing ones.
 *
 * They are untrusted: invalid ones are left out. Nothing in them runs automatically, and they have no credentials or
 * provider sessions.
 */
export const importConversations = (host: PartHost): Promise<boolean> => {
  const { place, journal, store, log } = host
  return takeReturned(place.data, GROUP, async (folder, names) => {
    for (const name of await journal.list('')) await journal.remove(name)
    for (const [key] of await store.all()) await store.delete(key)
    for (const name of await readdir(place.folder)) await rm(join(place.folder, name), { recursive: true, force: true })
    failpoint('agent.returned.cleared')
    for (const name of names) {
      const handed = await readFile(join(folder, name), 'utf8').then(
        text => parseExported(text, name),
        () => undefined,
      )
      if (!handed) {
        log.warn('reading a restored conversation failed', { name: name.slice(0, 80) })
        continue
      }
      const { conversation, settled, anchors } = handed
      await journal.rewrite(recordOf(conversation.id), settled)
      if (anchors.length > 0) await journal.rewrite(statesOf(conversation.id), anchors)
      await store.set(`c/${conversation.id}`, conversation)
    }
  })
}

/** Parses a conversation with its record from a file; undefined if it is invalid or has another name. */
export const parseExported = (text: string, name: string): ExportedConversation | undefined => {
  try {
    const { conversation, settled, anchors } = JSON.parse(text) as ExportedConversation
    const { id } = conversation
    const rows = settled.flatMap(line => line.rows)
    const messages = rows.map((row, index) => ({ ...row, index }))
    const fits =
      ID.test(id)
      && name === `${id}.json`
      && agent.reply()({ call: 'agent.conversation', output: { conversation, waiting: 0, queuePaused: false } }).success
      && agent.reply()({ call: 'GET /agents/{id}/transcript', output: { messages, total: messages.length } }).success
      && settled.every(({ run, placed }) => typeof (run ?? placed) === 'string')
    if (!fits) return undefined
    // The right to land in another sandbox does not apply here.
    const lines = settled.map(({ lands: _lands, ...line }) => line)
    return { conversation: disarmed(conversation), settled: lines, anchors: anchors.filter(isAnchor) }
  } catch {
    return undefined
  }
}

/** Removes settings that run automatically, use this machine's programs, or grant access of another sandbox. */
const disarmed = (conversation: Conversation): Conversation => {
  const {
    session: _memory,
    lastRun: _run,
    openedByToken: _token,
    permissionMode: _mode,
    autoLand: _lands,
    landsAlone: _alone,
    copyApart: _apart,
    resumeAfterOutage: _resumes,
    landRequested: _request,
    conflicts: _conflicts,
    starts: _starts,
    branch,
    startIn,
    folders,
    repos,
    ...kept
  } = conversation
  return {
    ...kept,
    heardOthers: true,
    ...(branch !== undefined && { branch: usualBranch(conversation.id) }),
    ...(startIn !== undefined && isPath(startIn) && { startIn }),
    ...(folders?.every(({ path }) => path === '.' || isPath(path)) && { folders }),
    repos: repos
      .filter(({ repo, base }) => (repo === 'root' || isPath(repo)) && COMMIT.test(base))
      .map(({ repo, base, pinned, landedTip, landedHead, landedAt }) => ({
        repo,
        base,
        ...(pinned && { pinned }),
        ...(landedTip !== undefined && COMMIT.test(landedTip) && { landedTip }),
        ...(landedHead !== undefined && COMMIT.test(landedHead) && { landedHead }),
        ...(landedAt !== undefined && { landedAt }),
      })),
  }
}

const isPath = (path: string): boolean => {
  try {
    return !segmentsOf(path).some(segment => segment.toLowerCase() === '.git')
  } catch {
    return false
  }
}

const isAnchor = ({ id, run, index, repos }: Anchor): boolean =>
  typeof id === 'string'
  && typeof run === 'string'
  && Number.isSafeInteger(index)
  && repos.every(({ repo, tip, base }) => (repo === 'root' || isPath(repo)) && COMMIT.test(tip) && COMMIT.test(base))
