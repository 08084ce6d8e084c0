import type { Handlers } from '../../../sdk/index.js'
import type { SessionRecordCalls } from './contract.js'
import type { Records } from './records.js'

/** Serves what was recorded of conversations. */
export const recordCalls = (records: Records): Handlers<SessionRecordCalls> => ({
  'agent.records': (asked, { caller }) => records.page(asked, caller),
  'agent.record': ({ id, limit, before }, { caller }) => records.get(id, caller, limit, before),
  'agent.sent': ({ id }, { caller }) => records.sent(id, caller),
  'agent.forget': async ({ id }, { caller }) => ({ title: await records.forget(id, caller) }),
})
