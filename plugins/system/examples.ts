import type { Examples } from '../../sdk/contract.js'
import type { BootProgress, Member } from '../../sdk/kernel.js'
import type { BrowserSession, Bundle, Me, System, TerminalSession } from './contract.js'

const ADA: Me = { actor: 'ada@example.org', kind: 'session', role: 'owner', sessionId: '5SjtqMOBQJDXoUuH8NcEUw' }
const BOOT: BootProgress = {
  ready: true,
  startedAt: 1795384992400,
  steps: [{ key: 'journals', label: 'Reading what was under way', state: 'done', ms: 12 }],
}
const WORKSPACE = '56c95e243ddb99b2ee1e5b46d33252b6'
const BUILD = '365b9215af1b0438'
const SHAPES = { 'agent.run': '0f3a6c2b91de' }
const BUNDLE: Bundle = {
  name: 'sandbox-20261122-220315-255869.tar.gz',
  state: 'ready',
  createdAt: 1795384995072,
  sizeBytes: 1048576,
  secrets: false,
  createdBy: 'ada@example.org',
}
const TERMINAL: TerminalSession = {
  name: 'web-1',
  label: 'Tests',
  kind: 'shell',
  running: true,
  activityAt: 1795384994000,
  command: 'npm',
  cwd: 'src',
  cols: 80,
  rows: 24,
  attached: 1,
}
const BROWSER: BrowserSession = {
  name: 'web-shop',
  label: 'Shop',
  server: 'web',
  running: true,
  activityAt: 1795384994000,
  pages: [{ id: 'p1', title: 'Shop', url: 'http://localhost:3000/', active: true }],
}
const MEMBERS: Member[] = [
  {
    email: 'ada@example.org',
    role: 'owner',
    grantedBy: 'sandbox:claim',
    grantedAt: 1795380000000,
    lastSeenAt: 1795384994000,
    bound: true,
  },
  {
    email: 'ben@example.org',
    role: 'collaborator',
    areas: ['frontend'],
    grantedBy: 'ada@example.org',
    grantedAt: 1795384994507,
    bound: false,
  },
]
const TICKET = 'Vqkjfrbzy07YPZHwdtWNPwW93DvlwpBZ9EKcdHwqFFg'

/** One use of each call. */
export const examples = (): Examples<System> => ({
  'GET /system/sign-in': {
    output: {
      claimed: true,
      local: false,
      name: 'shop',
      nonce: 'mwse858b.NGRi8585Wad-46ME8Gcw5Q',
      nonceExpiresAt: 1795385592443,
      providers: [
        {
          id: 'corp',
          label: 'Example Corp',
          issuer: 'https://id.example.org',
          clientId: 'sandbox',
          authorize: 'https://id.example.org/authorize',
          token: 'https://id.example.org/token',
          flow: 'code',
        },
      ],
    },
  },
  'POST /system/session': {
    input: { login: 'K7QX-2M9D-PT4H', device: 'laptop' },
    output: {
      token: 'sbs_5SjtqMOBQJDXoUuH8NcEUw.…',
      expiresAt: 1795428195526,
      email: 'ada@example.org',
      id: '5SjtqMOBQJDXoUuH8NcEUw',
      role: 'owner',
      renewed: false,
    },
  },
  'GET /system/sessions': {
    output: {
      sessions: [
        {
          id: '5SjtqMOBQJDXoUuH8NcEUw',
          email: 'ada@example.org',
          role: 'owner',
          device: 'laptop',
          via: 'local',
          createdAt: 1795384992417,
          lastSeenAt: 1795384993245,
          expiresAt: 1795428192417,
          address: '127.0.0.1',
          current: true,
        },
      ],
    },
  },
  'POST /system/sessions/revoke': { input: { email: 'ben@example.org' }, output: { ok: true, revoked: 2 } },
  'POST /system/control/tokens': {
    input: { label: 'ci', scope: 'drive', expiresAt: 1797976994553 },
    output: { id: 'T5v6YT6UNG_gqaFoK7yDUA', token: 'sbc_T5v6YT6UNG_gqaFoK7yDUA.…' },
  },
  'GET /system/control/tokens': {
    output: {
      tokens: [
        {
          id: 'T5v6YT6UNG_gqaFoK7yDUA',
          label: 'ci',
          scope: 'drive',
          createdAt: 1795384994553,
          createdBy: 'ada@example.org',
          expiresAt: 1797976994553,
        },
      ],
    },
  },
  'DELETE /system/control/tokens/{id}': { input: { id: 'T5v6YT6UNG_gqaFoK7yDUA' }, output: { ok: true } },
  'GET /members': { output: { members: MEMBERS, invitations: [] } },
  'POST /members': {
    input: { email: 'ben@example.org', role: 'collaborator', areas: ['frontend'] },
    output: { members: MEMBERS, invitations: [] },
  },
  'DELETE /members': { input: { email: 'ben@example.org' }, output: { members: MEMBERS.slice(0, 1), invitations: [] } },
  'DELETE /members/self': { output: { members: [], invitations: [] } },
  'POST /system/ws-ticket': {
    input: { for: 'terminal', name: 'web-1' },
    output: { ticket: TICKET, expiresAt: 1795385025035 },
  },
  'GET /bundles': { output: { exports: [BUNDLE] } },
  'POST /bundles': { input: { secrets: true, passphrase: 'four words nobody guesses' }, output: { name: BUNDLE.name } },
  'DELETE /bundles/{name}': { input: { name: BUNDLE.name }, output: { ok: true } },
  'GET /bundles/download': { input: { name: BUNDLE.name, ticket: TICKET }, output: '' },
  'POST /bundles/restore': {
    input: { path: 'backups/shop.tar.gz', mode: 'check' },
    output: {
      from: { name: 'shop', sandboxId: 'ba0e906ad88c2b394e31cba79d18094e', version: '0.1.0', createdAt: 1795384995072 },
      written: [
        { path: 'src', files: 41 },
        { path: 'state/agent', files: 7 },
      ],
      skipped: [{ path: 'node_modules', reason: 'tools make it again' }],
      todo: ['install the dependencies'],
      restarting: false,
      digest: '1f'.repeat(32),
    },
  },
  'GET /system/browsers': { output: { sessions: [BROWSER] } },
  'DELETE /system/browsers/{name}': { input: { name: 'web-shop' }, output: { ok: true } },
  'POST /system/browsers/{name}/page': {
    input: { name: 'web-shop', action: 'goto', url: 'http://localhost:3000/' },
    output: { session: BROWSER },
  },
  'GET /system/browser-view': {
    input: { session: 'web-shop', ticket: TICKET },
    output: {
      client: { type: 'mouse', action: 'down', x: 120, y: 48, button: 0 },
      server: { type: 'ready', width: 1280, height: 800 },
    },
  },
  'GET /system/subagents': {
    input: { status: 'live' },
    output: {
      sessions: [
        {
          id: 'r-670480f8a7444681b0a0:t3',
          kind: 'delegate',
          conversationId: 'cart-total',
          description: 'Find the tests of the cart',
          status: 'running',
          startedAt: 1795384992700,
          activityAt: 1795384993000,
          toolUses: 4,
          lastTool: 'Search',
        },
      ],
    },
  },
  'GET /system/subagents/{id}/transcript': {
    input: { id: 'r-670480f8a7444681b0a0:t3' },
    output: {
      messages: [
        { index: 0, role: 'user', text: 'Find the tests of the cart' },
        { index: 1, role: 'assistant', text: 'They are in test/cart.test.ts.' },
      ],
    },
  },
  'GET /info': {
    output: {
      version: '0.1.0',
      sandboxId: 'ba0e906ad88c2b394e31cba79d18094e',
      workspaceId: WORKSPACE,
      build: BUILD,
      contract: '1',
      routes: ['agent.run'],
      shapes: SHAPES,
      boot: BOOT,
      base: 'http://127.0.0.1:8787',
      me: ADA,
      wall: 'bwrap',
      runtimes: { script: { state: 'ready', checkedAt: 1_760_000_000_000 } },
      programs: [
        {
          name: 'git',
          present: true,
          version: '2.47.1',
          neededBy: ['agent', 'agents'],
          install: 'apt-get install git',
        },
      ],
    },
  },
  'GET /system/manifest-problems': {
    output: [
      {
        path: '.sandbox/config/settings.json',
        problems: [{ kind: 'unknownKey', detail: 'subagentDeph is no setting', suggestion: 'subagentDepth' }],
      },
    ],
  },
  'GET /metrics': {
    output: 'sandbox_calls_total{group="agents",call="GET /agents",status="200"} 12\n# EOF\n',
  },
  'GET /system/plugins': {
    output: {
      plugins: [{ name: 'agents', calls: 412, errors: 0, timed: 398, answerSeconds: 3.2 }],
      processes: [
        { origin: 'daemon', processes: 3, cpuSeconds: 41.5, rssBytes: 161775616 },
        { origin: 'extension', session: 'acme.tracker main', processes: 1, cpuSeconds: 0.8, rssBytes: 41943040 },
      ],
    },
  },
  'GET /system/usage': {
    input: { history: '1' },
    output: {
      machine: {
        at: 1795384993560,
        cpus: 8,
        cpuPct: 31.5,
        load: [2.5, 2.1, 1.8],
        memory: { totalBytes: 17179869184, usedBytes: 6613041152 },
        disks: [{ label: 'workspace', totalBytes: 270553174016, freeBytes: 82909765632 }],
        daemon: { pid: 812, rssBytes: 161775616, heapBytes: 43230704, loopLagMs: 4.6, uptimeMs: 86400000 },
        processes: [
          { pid: 1934, name: 'node', origin: 'agent', conversationId: 'cart-total', cpuPct: 97.5, rssBytes: 238964736 },
        ],
        recent: [{ at: 1795384980000, cpuPct: 28, usedBytes: 6597041152 }],
      },
    },
  },
  'GET /events': {
    input: { clientId: 'tab-1', roster: 'delta' },
    output: {
      message: { kind: 'runtimeChanged', domains: ['terminals'], versions: { terminals: 3 }, keys: ['web-1'] },
      done: { reason: 'restarting', retryMs: 1000 },
    },
  },
  'POST /system/presence': { input: { clientId: 'tab-1', idle: false, view: 'board' }, output: { ok: true } },
  'GET /system/terminals': { output: { sessions: [TERMINAL] } },
  'POST /system/terminals': {
    input: { name: 'web-1', label: 'Tests', cwd: 'src', command: 'npm test' },
    output: TERMINAL,
  },
  'DELETE /system/terminals/{name}': { input: { name: 'web-1' }, output: { ok: true } },
  'GET /system/terminals/{name}/scrollback': {
    input: { name: 'web-1', lines: 100 },
    output: { name: 'web-1', text: '$ npm test\n# pass 12', lines: 2, truncated: false },
  },
  'GET /system/terminal': {
    input: { session: 'web-1', ticket: TICKET, cols: 120, rows: 40 },
    output: { client: { type: 'input', data: 'npm test\r' }, server: { type: 'data', data: '# pass 12\r\n' } },
  },
})
