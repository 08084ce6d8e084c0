import type { Contract, Host } from '../../sdk/index.js'
import { recordingLimits } from '../../sdk/node/record/limited.js'
import { repeat } from '../../sdk/node/concurrency/repeat.js'
import { CurrentMasker } from '../../sdk/node/access/value-masker.js'
import { record } from '../../sdk/node/record/record.js'
import { outboxCalls } from './calls.js'
import { outboxContract, type BlockReason, type OutboxCalls } from './contract.js'
import { examples } from './examples.js'
import { Outbox } from './outbox.js'
import { OutboxBook } from './outbox-book.js'
import { OutboxServing } from './serving.js'
import type { StoredEntry, StoredFile } from './stored-entry.js'
import { Verdicts } from './verdicts.js'

export const contract: Contract<OutboxCalls> = { ...outboxContract, examples }

const SWEEP_MS = 60_000

/** Serves published files. */
export const activate = async (host: Host): Promise<void> => {
  const failed = (what: string) => (error: unknown) =>
    void (host.signal.aborted || host.log.error(`${what} failed`, { error: String(error) }))
  const secrets = new CurrentMasker(host)
  const masker = () => secrets.now()
  const book = new OutboxBook(host)
  const outbox = new Outbox(host.place.workspace, book, masker)
  const verdicts = new Verdicts(outbox, masker)
  const publish = (key?: string) =>
    void host
      .call('kernel.events.publish', { domain: 'outbox', ...(key && { key }) })
      .catch(failed('publishing a change'))

  /** Notes once that a file became blocked, and that it is served again. */
  const judged = (entry: StoredEntry, file: StoredFile, reason: BlockReason | undefined) => {
    if (file.blocked === reason || reason === 'expired') return
    const note = async () => {
      const noted = await outbox.note(entry, () => {
        if (reason) file.blocked = reason
        else delete file.blocked
      })
      if (!noted) return
      publish(file.path)
      if (reason)
        await record(host, { type: 'outbox.blocked', extra: { path: file.path, reason }, actor: 'sandbox:outbox' })
    }
    void note().catch(failed('noting a blocked file'))
  }

  const sweep = async () => {
    await book.keepOpened()
    for (const entry of book.all) {
      const { name, expiresAt = Infinity, expired } = entry
      if (expired || expiresAt > Date.now() || !(await outbox.note(entry, () => (entry.expired = true)))) continue
      publish(name)
      await record(host, { type: 'outbox.expired', extra: { path: name }, actor: 'sandbox:outbox' })
    }
  }
  repeat(host, SWEEP_MS, 'looking for expired files', sweep)
  host.boot('Outbox', () => outbox.recover())
  host.stopping(async () => {
    await book.keepOpened()
  })

  const isOn = host.place.publicPages.serve !== 'off'
  const serving = new OutboxServing({ outbox, verdicts, isOn, judged })
  const handlers = outboxCalls({ host, outbox, verdicts, serving, published: publish })
  await host.serve(outboxContract, recordingLimits(host, ['GET /p/{slot}/{path}'], handlers))
}
