import t from 'tap'
import { ApprovalQueue } from '../../../plugins/approvals/queue.js'
import type { StoredApproval } from '../../../plugins/approvals/stored-approval.js'
import { exactly } from '../../support/lists.js'

const ITEM: StoredApproval = {
  ...{
    id: 'a',
    kind: 'post',
    post: { platform: 'webhook', content: 'hi' },
    status: 'approved',
    digest: '0'.repeat(64),
  },
  ...{ proposedBy: 'ada', createdAt: 1, updatedAt: 1, sendAt: 1, attempts: [], tries: 0, owner: 'ada' },
}

t.test('what cannot be stored is not sent, and is not tried again at once', async t => {
  let tried = 0
  const failures: string[] = []
  const stopped = new AbortController()
  t.teardown(() => stopped.abort())
  const queue = new ApprovalQueue({
    host: {
      signal: stopped.signal,
      log: { info: () => {}, warn: () => {}, error: (message: string) => failures.push(message) },
      store: {
        all: async () => [['a', ITEM]],
        set: async () => {
          tried++
          throw Object.assign(new Error('the disk is full'), { code: 'ENOSPC' })
        },
      },
      serves: async () => false,
      emit: () => {},
      call: () => Promise.reject(new Error('no call is served')),
    } as never,
    find: async () => ({ lane: 'a', subjects: [], carryOut: () => t.fail('it was sent') }) as never,
    copies: { keepOnly: async () => {}, remove: async () => {} } as never,
    say: async () => {},
    halt: async () => {},
    published: () => {},
    filed: () => {},
  })
  await queue.load()
  await queue.resume()
  await new Promise(resolve => setTimeout(resolve, 200))
  t.equal(tried, 1)
  t.same(failures, ['carrying out an approval failed'])
  queue.stop()
})

t.test('what the last daemon was sending is unknown also where its turn cannot be ended', async t => {
  const attempts = [{ at: 1, via: 'turn', conversationId: 'post-1', run: 'r-1' }] as const
  const warnings: string[] = []
  const queue = new ApprovalQueue({
    host: {
      signal: new AbortController().signal,
      log: { info: () => {}, warn: (message: string) => warnings.push(message), error: t.fail },
      store: { all: async () => [['a', { ...ITEM, status: 'sending', attempts }]], set: async () => {} },
      serves: async () => false,
      emit: () => {},
      call: () => Promise.reject(new Error('no call is served')),
    } as never,
    find: async () => ({ problem: 'nothing posts' }),
    copies: { keepOnly: async () => {}, remove: async () => {} } as never,
    say: async () => {},
    halt: () => Promise.reject(new Error('it does not end')),
    published: () => {},
    filed: () => {},
  })
  await queue.load()
  await queue.resume()
  t.match(queue.get('a'), { status: 'failed', attempts: exactly({ outcome: 'unknown' }) })
  t.same(warnings, ['ending the turn of an approval failed'])
  queue.stop()
})
