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

t.test('a conversation that cannot be stopped after a start keeps no other item from going out', async t => {
  const stopped = new AbortController()
  t.teardown(() => stopped.abort())
  const stored = new Map<string, StoredApproval>([
    ['a', ITEM],
    [
      'b',
      { ...ITEM, id: 'b', status: 'sending', attempts: [{ at: 1, via: 'turn', conversationId: 'post-b', run: 'r' }] },
    ],
  ])
  const sent = Promise.withResolvers<string>()
  const queue = new ApprovalQueue({
    host: {
      signal: stopped.signal,
      log: { info: () => {}, warn: () => {}, error: () => {} },
      store: {
        all: async () => [...stored],
        set: async (key: string, item: StoredApproval) => void stored.set(key, item),
      },
      serves: async () => false,
      emit: () => {},
      call: () => Promise.reject(new Error('no call is served')),
    } as never,
    find: async () => {
      const carryOut = async (key: string) => {
        sent.resolve(key)
        return {}
      }
      return { lane: 'a', subjects: [], carryOut } as never
    },
    copies: { keepOnly: async () => {}, remove: async () => {} } as never,
    say: async () => {},
    halt: async () => {
      throw new Error('the conversation is being prepared')
    },
    published: () => {},
    filed: () => {},
  })
  await queue.load()
  await queue.resume()
  t.match(queue.get('b'), { status: 'failed', attempts: exactly({ outcome: 'unknown' }) })
  t.equal(await sent.promise, 'a-1')
  queue.stop()
})
