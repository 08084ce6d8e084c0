import t from 'tap'
import { saveSharedState } from '../../../../plugins/agent/turn/environment/shared-state.js'

/** Saves the shared tree where the history answers as told; returns the kept states and what was logged. */
const saved = async (answer: () => Promise<object>, signal = new AbortController().signal) => {
  const kept: string[] = []
  const logged: string[] = []
  const deps = {
    host: { serves: async () => true, call: answer },
    anchors: { keep: async (_conversation: string, { id }: { id: string }) => void kept.push(id) },
    log: { warn: (message: string) => logged.push(message) },
  }
  const turn = { conversationId: 's', run: 'r', index: 0, signal, log: { push: () => {} } }
  // Such a signal keeps no process alive.
  const alive = setTimeout(() => {}, 10_000)
  try {
    await saveSharedState(deps as never, turn as never, 20)
  } finally {
    clearTimeout(alive)
  }
  return { kept, logged }
}

t.test('a point that lacks a repository is no state that a message can be rewound to', async t => {
  t.same(await saved(async () => ({ id: 'whole' })), { kept: ['whole'], logged: [] })
  t.same(await saved(async () => ({ id: 'half', partial: ['web'] })), { kept: [], logged: [] })
})

t.test('a turn goes on where saving takes too long, and ends where it was stopped', { timeout: 5_000 }, async t => {
  const never = () => new Promise<object>(() => {})
  t.same(await saved(never), { kept: [], logged: ['saving the shared tree before a turn failed'] })
  await t.rejects(saved(never, AbortSignal.abort(new Error('stopped'))), { message: 'stopped' })
})
