import type { Examples } from '../../sdk/contract.js'
import type { Issue, IssueEvent, IssuesCalls, Reporter } from './contract.js'

const AT = 1_760_000_000_000
const ID = 'iss_0a1b2c3d4e5f60718293'
const EVENT = '9f1c2d3e4b5a69788796a5b4c3d2e1f0'
const ISSUE: Issue = {
  ...{ id: ID, reporter: 1, title: 'TypeError: total is not a function', type: 'TypeError', culprit: 'checkout' },
  ...{ level: 'error', platform: 'node', state: 'open', isNew: true, count: 42, users: 7, firstSeen: AT, lastSeen: AT },
  ...{ firstRelease: 'shop@1.4.0', lastRelease: 'shop@1.4.1', environments: ['production'] },
  trend: [...Array.from({ length: 22 }, () => 0), 2, 40],
  location: { repo: 'shop', path: 'shop/src/checkout.ts', line: 12, function: 'pay' },
}
const REPORTED: IssueEvent = {
  ...{ id: EVENT, at: AT, receivedAt: AT, level: 'error', release: 'shop@1.4.1', environment: 'production' },
  exceptions: [
    {
      ...{ type: 'TypeError', value: 'total is not a function', handled: false },
      frames: [
        {
          ...{ function: 'pay', file: '../src/checkout.ts', line: 12, column: 9, own: true, mapped: true },
          ...{ path: 'shop/src/checkout.ts', before: ['const pay = basket => {'], source: '  return total(basket)' },
          after: ['}'],
        },
      ],
    },
  ],
  breadcrumbs: [{ at: AT, category: 'http', message: 'GET /basket' }],
  tags: { region: 'eu' },
  sdk: { name: 'sentry.javascript.node', version: '10.78.0' },
}
const REPORTER: Reporter = {
  ...{ id: 1, label: 'Shop', repo: 'shop', key: '0123456789abcdef0123456789abcdef' },
  dsn: 'https://0123456789abcdef0123456789abcdef@sandbox.example.org/ingest/1',
  ...{ allowedOrigins: [], enabled: true, keepUser: false, dailyMax: 20_000 },
  ...{ createdAt: AT, createdBy: 'ada@example.org', lastEventAt: AT },
  today: { accepted: 42, dropped: 3, limited: 0 },
}
const SENT = {
  project: 1,
  'x-sentry-auth': 'Sentry sentry_version=7, sentry_key=0123456789abcdef0123456789abcdef',
}

/** One use of each call. */
export const examples = (): Examples<IssuesCalls> => ({
  'GET /issues': {
    input: { state: 'open', sort: 'count' },
    output: { issues: [ISSUE], total: 1, counts: { open: 1, resolved: 0, ignored: 0 }, seenAt: AT - 1000 },
  },
  'GET /issues/{id}': { input: { id: ID }, output: { issue: ISSUE, events: [REPORTED] } },
  'POST /issues/state': {
    input: { ids: [ID], state: 'resolved', in: 'next-release' },
    output: {
      issues: [{ ...ISSUE, state: 'resolved', resolved: { at: AT + 1000, by: 'ada@example.org', in: 'next-release' } }],
    },
  },
  'POST /issues/{id}/fix': {
    input: { id: ID, note: 'It began with the new basket.', resolveOnLand: true },
    output: { conversationId: 'fix-5d41402abc4b2a76b971', run: 'r-5d41402abc4b2a76b971' },
  },
  'POST /issues/seen': { output: { seenAt: AT + 2000 } },
  'GET /issues/reporters': {
    output: { reporters: [REPORTER], ingest: 'https://sandbox.example.org/ingest/', reach: 'public' },
  },
  'POST /issues/reporters': { input: { label: 'Shop', repo: 'shop' }, output: REPORTER },
  'DELETE /issues/reporters/{id}': { input: { id: 1, purge: true }, output: { ok: true, purged: 1 } },
  'POST /ingest/api/{project}/envelope/': {
    input: {
      ...SENT,
      body: Buffer.from(`{"event_id":"${EVENT}"}\n{"type":"event"}\n{"message":"full"}\n`).toString('base64'),
    },
    output: { id: EVENT },
  },
  'POST /ingest/api/{project}/store/': {
    input: { ...SENT, body: Buffer.from(`{"event_id":"${EVENT}","message":"full"}`).toString('base64') },
    output: { id: EVENT },
  },
})
