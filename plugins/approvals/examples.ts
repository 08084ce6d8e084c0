import type { Examples } from '../../sdk/contract.js'
import type { Approval, ApprovalsCalls, Draft } from './contract.js'

const DIGEST = 'b'.repeat(64)
const POST = {
  kind: 'post',
  post: { platform: 'webhook', target: 'https://hooks.example.org/news', content: 'Version 2 is out.' },
  why: 'The release is built.',
} as const
const PROPOSED: Approval = {
  ...POST,
  ...{ id: 'a-1', status: 'proposed', digest: DIGEST, proposedBy: 'conversation:first' },
  ...{ createdAt: 1_760_000_000_000, updatedAt: 1_760_000_000_000, via: 'executor', ownerOnly: false, attempts: [] },
}
const APPROVED: Approval = {
  ...PROPOSED,
  ...{ status: 'approved', approvedBy: 'ada@example.org', approvedAt: 1_760_000_100_000, sendAt: 1_760_000_160_000 },
}

const DRAFT: Draft = {
  ...POST.post,
  ...{ id: 'a-1', status: 'proposed', why: POST.why, createdAt: 1_760_000_000_000, updatedAt: 1_760_000_000_000 },
}

/** One use of each call. */
export const examples = (): Examples<ApprovalsCalls> => ({
  'GET /approvals': { input: { status: 'proposed' }, output: { approvals: [PROPOSED], counts: { proposed: 1 } } },
  'POST /approvals': { input: POST, output: PROPOSED },
  'POST /approvals/{id}/approve': { input: { id: 'a-1', digest: DIGEST }, output: APPROVED },
  'POST /approvals/{id}/recall': { input: { id: 'a-1' }, output: PROPOSED },
  'POST /approvals/{id}/decline': {
    input: { id: 'a-1', reason: 'Not before Monday.' },
    output: { ...PROPOSED, status: 'declined', declinedBy: 'ada@example.org', reason: 'Not before Monday.' },
  },
  'DELETE /approvals/{id}': { input: { id: 'a-1' }, output: { ok: true } },
  'GET /drafts': { output: { drafts: [DRAFT] } },
  'POST /drafts': { input: { ...POST.post, status: 'proposed' }, output: DRAFT },
  'DELETE /drafts/{id}': { input: { id: 'a-1' }, output: { ok: true } },
})
