import type { Examples } from '../../sdk/contract.js'
import type { GitCalls } from './contract.js'

const HEAD = 'f1d2d2f924e986ac86fdf7b36c94bcdf32beec15'
const PARENT = 'e242ed3bffccdf271b7fbaf34ed72d089537b42f'
const AT = 1795384994000

/** One use of each call. */
export const examples = (): Examples<GitCalls> => ({
  'GET /git/changes': {
    output: {
      repos: [
        {
          repo: 'root',
          branch: 'main',
          conflicted: [],
          staged: [{ path: 'src/cart.ts', status: 'modified', additions: 3, deletions: 1 }],
          unstaged: [],
          remote: { remote: 'origin', branch: 'main', upstream: 'origin/main', ahead: 1, behind: 0 },
        },
      ],
    },
  },
  'GET /git/repos': { output: { repos: ['services/api'] } },
  'GET /git/remote-repos': { output: { repos: [{ repo: 'services/api', host: 'github.com', project: 'acme/api' }] } },
  'GET /git/{repo}/status': {
    input: { repo: 'root' },
    output: { branch: 'main', dirty: true, files: ['src/cart.ts'], head: HEAD },
  },
  'GET /git/{repo}/file-diff': {
    input: { repo: 'root', path: 'src/cart.ts', side: 'unstaged' },
    output: { before: 'let items = 1\n', after: 'let items = 2\n' },
  },
  'GET /git/{repo}/operation': {
    input: { repo: 'root' },
    output: {
      repo: 'root',
      operation: 'rebase',
      head: HEAD,
      onto: PARENT,
      step: 2,
      total: 3,
      subject: 'Add the cart',
      unmerged: 1,
      canContinue: false,
    },
  },
  'GET /git/{repo}/log': {
    input: { repo: 'root', limit: 1 },
    output: {
      repo: 'root',
      branch: 'main',
      commits: [
        {
          sha: HEAD,
          short: 'f1d2d2f',
          parents: [PARENT],
          subject: 'Add the cart',
          body: '',
          author: 'Ada',
          email: 'ada@example.org',
          at: AT,
          refs: ['main', 'tag: v1'],
          head: true,
        },
      ],
      hasMore: true,
    },
  },
  'GET /git/{repo}/commit-diff': {
    input: { repo: 'root', sha: HEAD },
    output: { files: [{ path: 'src/cart.ts', status: 'added', additions: 12, deletions: 0 }] },
  },
  'GET /git/{repo}/commit-file-diff': {
    input: { repo: 'root', sha: HEAD, path: 'src/cart.ts' },
    output: { after: 'let items = 1\n' },
  },
  'GET /git/{repo}/blame': {
    input: { repo: 'root', path: 'src/cart.ts' },
    output: {
      path: 'src/cart.ts',
      lines: 1,
      hunks: [
        {
          sha: HEAD,
          start: 1,
          count: 1,
          fromLine: 1,
          author: 'Ada',
          email: 'ada@example.org',
          at: AT,
          subject: 'Add the cart',
        },
      ],
    },
  },
  'GET /git/{repo}/branches': {
    input: { repo: 'root' },
    output: {
      branches: [{ name: 'main', current: true, sha: HEAD, upstream: 'origin/main', ahead: 1, behind: 0, at: AT }],
      remotes: [{ name: 'origin/main', remote: 'origin', branch: 'main', at: AT }],
      tags: [{ name: 'v1', sha: HEAD, at: AT, annotated: false }],
      defaultBranch: 'main',
    },
  },
  'GET /git/{repo}/worktrees': {
    input: { repo: 'root' },
    output: { worktrees: [{ path: '.', main: true, branch: 'main', head: HEAD }], submodules: [] },
  },
  'GET /git/{repo}/stashes': {
    input: { repo: 'root' },
    output: {
      repo: 'root',
      stashes: [
        {
          ref: 'stash@{0}',
          sha: HEAD,
          short: 'f1d2d2f',
          subject: 'half a cart',
          branch: 'main',
          at: AT,
          parents: [PARENT, PARENT],
        },
      ],
    },
  },
  'GET /git/{repo}/stash-diff': {
    input: { repo: 'root', ref: 'stash@{0}' },
    output: { files: [{ path: 'src/cart.ts', status: 'modified', additions: 1, deletions: 1 }] },
  },
  'GET /git/{repo}/remote': {
    input: { repo: 'root' },
    output: { remote: 'origin', branch: 'main', upstream: 'origin/main', ahead: 1, behind: 0 },
  },
  'GET /git/{repo}/remotes': {
    input: { repo: 'root' },
    output: {
      remotes: [
        {
          name: 'origin',
          url: 'https://github.com/acme/shop.git',
          host: 'github.com',
          project: 'acme/shop',
          branches: 3,
        },
      ],
    },
  },
  'GET /git/{repo}/files': {
    input: { repo: 'root', limit: 2 },
    output: { files: ['README.md', 'src/cart.ts'], hasMore: true },
  },
  'GET /git/{repo}/file': {
    input: { repo: 'root', path: 'src/cart.ts', ref: 'main' },
    output: { path: 'src/cart.ts', content: 'let items = 1\n', sha: PARENT },
  },
  'POST /git/{repo}/stage': { input: { repo: 'root', paths: ['src/cart.ts'] }, output: { ok: true } },
  'POST /git/{repo}/unstage': { input: { repo: 'root', paths: ['src/cart.ts'] }, output: { ok: true } },
  'POST /git/{repo}/commit': {
    input: { repo: 'root', message: 'Add the cart', paths: ['src/cart.ts'], expectHead: PARENT },
    output: { committed: true, head: HEAD },
  },
  'POST /git/{repo}/discard': {
    input: { repo: 'root', paths: ['src/cart.ts'] },
    output: { ok: true, point: '7e0d6cde-94a1-4a0e-9b57-3f2b6d6f4c11' },
  },
  'POST /git/{repo}/branch': { input: { repo: 'root', sha: HEAD, name: 'cart' }, output: { ok: true } },
  'POST /git/{repo}/branches': { input: { repo: 'root', name: 'cart', checkout: true }, output: { ok: true } },
  'POST /git/{repo}/branches/delete': { input: { repo: 'root', name: 'cart' }, output: { ok: true, sha: HEAD } },
  'POST /git/{repo}/tag': {
    input: { repo: 'root', sha: HEAD, name: 'v1', message: 'version one' },
    output: { ok: true },
  },
  'POST /git/{repo}/checkout': { input: { repo: 'root', ref: 'main' }, output: { ok: true, head: HEAD } },
  'POST /git/{repo}/stash': { input: { repo: 'root', message: 'half a cart' }, output: { ok: true, head: HEAD } },
  'POST /git/{repo}/stash/apply': {
    input: { repo: 'root', ref: 'stash@{0}', pop: true },
    output: { ok: false, code: 'conflict', reason: 'src/cart.ts conflicts', conflicts: ['src/cart.ts'], head: HEAD },
  },
  'POST /git/{repo}/stash/drop': { input: { repo: 'root', ref: 'stash@{0}' }, output: { ok: true, sha: HEAD } },
  'POST /git/{repo}/merge': { input: { repo: 'root', sha: PARENT }, output: { ok: true, head: HEAD } },
  'POST /git/{repo}/rebase': { input: { repo: 'root', sha: PARENT }, output: { ok: true, head: HEAD, pushed: false } },
  'POST /git/{repo}/cherry-pick': { input: { repo: 'root', sha: PARENT }, output: { ok: true, head: HEAD } },
  'POST /git/{repo}/revert': { input: { repo: 'root', sha: PARENT }, output: { ok: true, head: HEAD } },
  'POST /git/{repo}/drop': { input: { repo: 'root', sha: PARENT }, output: { ok: true, head: HEAD, pushed: true } },
  'POST /git/{repo}/reset': { input: { repo: 'root', sha: PARENT, mode: 'mixed' }, output: { ok: true, head: PARENT } },
  'POST /git/{repo}/continue': { input: { repo: 'root' }, output: { ok: true, head: HEAD } },
  'POST /git/{repo}/abort': { input: { repo: 'root' }, output: { ok: true, head: HEAD } },
  'GET /git/{repo}/undo': {
    input: { repo: 'root' },
    output: {
      repo: 'root',
      action: {
        kind: 'commit',
        description: 'commit: Add the cart',
        branch: 'main',
        sha: HEAD,
        previousSha: PARENT,
        changesWorkingTree: true,
        commits: [{ sha: HEAD, short: 'f1d2d2f', subject: 'Add the cart' }],
        pushed: false,
        files: [{ path: 'src/cart.ts', status: 'deleted', additions: 0, deletions: 12 }],
        wouldLose: [],
        recommended: 'soft',
      },
    },
  },
  'POST /git/{repo}/undo': { input: { repo: 'root', previousSha: PARENT }, output: { ok: true, head: PARENT } },
  'POST /git/{repo}/remotes': {
    input: { repo: 'root', name: 'origin', url: 'https://github.com/acme/shop.git' },
    output: { ok: true },
  },
  'POST /git/{repo}/fetch': { input: { repo: 'root', remote: 'origin' }, output: { ok: true, head: HEAD } },
  'POST /git/{repo}/pull': {
    input: { repo: 'root', expectHead: HEAD },
    output: { ok: false, code: 'not-fast-forward', reason: 'main has 1 commits that origin/main lacks', head: HEAD },
  },
  'POST /git/{repo}/push': { input: { repo: 'root', branch: 'main' }, output: { ok: true, head: HEAD } },
  'POST /git/{repo}/tag/push': {
    input: { repo: 'root', name: 'v1', remote: 'origin' },
    output: { ok: true, head: HEAD },
  },
  'POST /git/{repo}/tag/delete': {
    input: { repo: 'root', name: 'v1', remote: 'origin' },
    output: { ok: true, remote: { ok: true } },
  },
  'PUT /git/{repo}/file': { input: { repo: 'root', path: 'NOTES.md', content: '# Notes\n' }, output: { ok: true } },
  'POST /git/{repo}/publish-file': {
    input: { repo: 'root', path: 'NOTES.md', content: '# Notes\n', message: 'Add notes' },
    output: { ok: true, wrote: true, committed: true, pushed: true, branch: 'main', defaultBranch: 'main' },
  },
  'POST /workspace/repos': {
    input: { name: 'shop', cloneUrl: 'https://github.com/acme/shop.git', branch: 'main' },
    output: { name: 'shop', path: 'shop' },
  },
  'POST /workspace/repos/init': {
    input: { path: 'tools', branch: 'main' },
    output: { repo: 'tools', path: 'tools', head: HEAD },
  },
  'POST /workspace/sync': {
    input: { repos: ['shop', 'tools'] },
    output: {
      repos: [
        { repo: 'shop', status: 'updated', ahead: 0, behind: 0, head: HEAD },
        { repo: 'tools', status: 'no-remote' },
      ],
    },
  },
})
