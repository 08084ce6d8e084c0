import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../../../kernel/storage/store.js'
import type { Conversation } from '../../../plugins/agent/contract.js'
import { AnswerLedger } from '../../../plugins/agent/queue/answer-ledger.js'
import type { LedgerRow, Line } from '../../../plugins/agent/queue/lines.js'
import { JournalStore } from '../../../sdk/node/journal/journal-store.js'
import { inGit, makeWorkspace } from '../daemon.js'

/** A workspace and the data folder of a daemon that ran conversations. */
export interface Ran {
  readonly workspace: string
  readonly data: string
  readonly ids: readonly string[]
}

/** An hour ago: older conversations would be archived. */
const AT = Date.now() - 3_600_000
const ON_BOARD = 200
const ACCEPTED = 500
const BY = 'ada@example.org'
const PARALLEL = 64

const runOf = (at: number): string => `r-${String(at).padStart(20, '0')}`

const conversationOf = (at: number, id: string, head: string, archived: boolean): Conversation => ({
  id,
  title: `conversation ${at} about the parts of the fleet`,
  titleBy: 'prompt',
  createdAt: AT,
  updatedAt: AT + at,
  openedBy: BY,
  lastBy: BY,
  provider: 'script',
  harness: 'native',
  model: 'script',
  permissionMode: 'bypassPermissions',
  landsAlone: true,
  lastRun: runOf(at),
  lastEnd: 'completed',
  session: { id: `script-${id}`, provider: 'script', harness: 'native' },
  // An archived one keeps its branch, and no private copy.
  repos: archived ? [{ repo: 'root', base: head }] : [],
  ...(archived && { archivedAt: AT + at, branch: `agent/${id}` }),
  totals: { turns: 1, toolUses: 2, helpers: 0, costUsd: 0.01, inputTokens: 100, outputTokens: 50 },
})

/**
 * Writes what a daemon leaves that ran one turn in each of so many conversations and archived all but the newest 200,
 * with the daemon's own storage. The streams of `open` of them were not ended, as after a kill.
 */
export const seedConversations = async (folder: string, count: number, open: readonly number[] = []): Promise<Ran> => {
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  mkdirSync(data, { recursive: true, mode: 0o700 })
  makeWorkspace(workspace)
  const head = inGit(workspace, 'rev-parse', 'HEAD').trim()
  const store = openStore(`sqlite://${join(data, 'store.sqlite')}`)
  const journals = new JournalStore(join(data, 'journals'))
  const ids = Array.from({ length: count }, (_, at) => `c-${String(at).padStart(5, '0')}`)
  const ledger = new AnswerLedger()
  const lines: Line[] = []
  const left = ids.entries()
  const write = async (at: number, id: string): Promise<void> => {
    const conversation = conversationOf(at, id, head, at < count - ON_BOARD)
    const run = runOf(at)
    const frames = [
      { kind: 'session', id: `script-${id}` },
      { kind: 'delta', text: 'the words of an ordinary answer. '.repeat(8) },
      { kind: 'text_end' },
      { kind: 'done', reason: 'completed' },
    ]
    await Promise.all([
      store.of('agent').set(`c/${id}`, conversation),
      store.of('agents').set(id, { committed: run, large: false }),
      journals.append(`agent/transcripts/${id}`, [
        {
          run,
          rows: [
            { role: 'user', text: `please look at part ${at}` },
            { role: 'assistant', text: 'done' },
          ],
        },
      ]),
      journals.append(`agent/anchors/${id}`, [{ id: `branch:${head}`, run, index: 0, repos: [] }]),
      journals.append(
        `agent/frames/${run}`,
        frames.map((event, seq) => ({ kind: 'frame', seq: seq + 1, event })),
      ),
    ])
    if (!open.includes(at))
      await journals.close(`agent/frames/${run}`, [
        { event: 'message', data: { kind: 'end' } },
        { event: 'done', data: { run, reason: 'completed' } },
      ])
  }
  await Promise.all(
    Array.from({ length: PARALLEL }, async () => {
      for (const [at, id] of left) await write(at, id)
    }),
  )
  for (const [at, conversationId] of ids.entries()) {
    const row: LedgerRow = {
      run: runOf(at),
      conversationId,
      messageId: `m-${String(at).padStart(20, '0')}`,
      delivery: 'started',
      at: AT + at,
    }
    if (at < count - ACCEPTED) ledger.set(row)
    else {
      const { run, messageId } = row
      const input = { conversationId, prompt: `please look at part ${at}`, agent: 'script' }
      const message = { run, conversationId, messageId, input, by: BY, attended: true, at: row.at }
      lines.push({ line: 'accept', row, message, opened: conversationOf(at, conversationId, head, false) })
      lines.push({ line: 'ended', conversationId, run, paused: false })
    }
  }
  await journals.append('agent/queue', [
    ...ledger.text(() => true).blocks.map((rows): Line => ({ line: 'ledger', rows })),
    ...lines,
  ])
  await journals.append('agent/attachments', [{ complete: true }])
  await Promise.all([store.close(), journals.shutdown()])
  return { workspace, data, ids }
}
