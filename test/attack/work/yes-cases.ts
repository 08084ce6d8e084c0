import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { automation } from '../../support/automations.js'
import { inGit, type Support } from '../../support/daemon.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { commitAll, put, tryGit } from '../../plugins/git/support.js'
import { brought, packed } from '../../plugins/system/bundles/bundles-support.js'

type Yes = () => Promise<unknown>

/** A yes, and what happens between the look and the yes. */
export interface YesCase {
  /** Looks, and returns the yes to what was seen. */
  readonly look: (daemon: Support) => Promise<Yes>
  /** What happens between the look and the yes. */
  readonly between: (daemon: Support) => unknown
  /** What a yes changes: it must be the same before and after the refusal. */
  readonly state: (daemon: Support) => unknown
  /** Puts back what the next case does not expect. */
  readonly after?: (daemon: Support) => unknown
  /** The yes has had its answer already: it is given again, and is none to anything else. */
  readonly answered?: true
}

const write = (path: string, text: string) => (daemon: Support) => put(daemon.workspace, { [path]: text })
const read = (path: string) => (daemon: Support) => {
  const place = join(daemon.workspace, path)
  return existsSync(place) ? readFileSync(place, 'utf8') : undefined
}
/** Writes as many bytes and sets the times back, as a build that wants to look unchanged does. */
const sameTime = ({ workspace }: Support) => {
  const place = join(workspace, 'docs/a.md')
  const { atime, mtime, size } = statSync(place)
  writeFileSync(place, 'x'.repeat(size))
  utimesSync(place, atime, mtime)
}
const swapped = (place: string) => {
  cpSync(place, `${place}.other`, { preserveTimestamps: true })
  renameSync(`${place}.other`, place)
}
const linked = (place: string) => {
  rmSync(place)
  symlinkSync('b.md', place)
}
const madeFolder = (place: string) => {
  rmSync(place)
  mkdirSync(place)
}
const git =
  (...args: string[]) =>
  ({ workspace }: Support) =>
    inGit(workspace, ...args)
const moves = ({ workspace }: Support) => {
  put(workspace, { 'moved.txt': `${Math.random()}` })
  return commitAll(workspace, 'an agent commits')
}
const refs = ({ workspace }: Support) =>
  inGit(workspace, 'for-each-ref') + inGit(workspace, 'ls-remote', 'origin') + inGit(workspace, 'rev-parse', 'HEAD')
const headOf = async ({ client }: Support) => {
  const { head } = await client.call('GET /git/{repo}/remote', { repo: 'root' })
  return { repo: 'root', expectHead: head! }
}
const tagOf = async ({ client }: Support) =>
  (await client.call('GET /git/{repo}/branches', { repo: 'root' })).tags.find(({ name }) => name === 'v1')!
const stampsOf = async ({ client }: Support) => {
  const { repos } = await client.call('GET /git/changes', { repo: 'root' })
  const rows = repos.flatMap(({ staged, unstaged }) => [...staged, ...unstaged])
  return Object.fromEntries(rows.map(({ path, stamp }) => [path, stamp!]))
}
/** A call about a commit that names where HEAD was seen. */
const onHead = (call: 'merge' | 'rebase' | 'cherry-pick' | 'revert' | 'drop'): YesCase => ({
  look: async daemon => {
    const [seen, sha] = [await headOf(daemon), inGit(daemon.workspace, 'rev-parse', 'HEAD').trim()]
    return () => daemon.client.call(`POST /git/{repo}/${call}`, { ...seen, sha })
  },
  between: moves,
  state: refs,
})

const asked = { conversationId: 'c', detail: 'everything', title: 'T' } as const
const sharedPages = async ({ client }: Support) =>
  (await client.call('GET /share', {})).shares.map(({ messages, sharedAt }) => [messages, sharedAt])
const says = ({ client }: Support) => runTurn(client, 'c', 'say what nobody has seen')
const published = async ({ client }: Support) => (await client.call('GET /public', {})).files.map(({ path }) => path)

const publishing = (path: string, between: YesCase['between'], more: object = {}): YesCase => ({
  look: async ({ client }) => {
    const { digest } = await client.call('POST /public/publish', { path, mode: 'check', ...more })
    return () => client.call('POST /public/publish', { path, expect: digest, ...more })
  },
  between,
  state: published,
})

const restoring = (between: YesCase['between'], more: object = {}): YesCase => ({
  look: async daemon => {
    const { client } = daemon
    const { id } = await client.call('POST /history/snapshots', {})
    write('docs/a.md', 'changed since\n')(daemon)
    const { now } = await client.call('GET /history/diff', { id: id!, against: 'now' })
    return () => client.call('POST /history/restore', { id: id!, expect: now!, ...more })
  },
  between,
  state: daemon => [read('docs/a.md')(daemon), read('docs/new.md')(daemon)],
})

const QUESTIONS = 'ask One?\n| yes: on\nask Two?\n| yes: on'
const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')
/** A merge that stops. */
const conflict = ({ workspace }: Support) => {
  const text = () => ({ 'clash.txt': `${Math.random()}\n` })
  inGit(workspace, 'checkout', '-q', '-B', 'clash')
  put(workspace, text())
  commitAll(workspace, 'theirs')
  inGit(workspace, 'checkout', '-q', 'main')
  put(workspace, text())
  commitAll(workspace, 'ours')
  tryGit(workspace, 'merge', '-q', 'clash')
}
const guarded = (prompt: string) => automation('guarded', { trigger: { kind: 'event' }, requireApproval: true, prompt })
const stash = (text: string) => (daemon: Support) => {
  write('docs/a.md', `${text} ${Math.random()}\n`)(daemon)
  git('stash', '-q')(daemon)
}
const discarding = (between: YesCase['between'], more: object = {}): YesCase => ({
  look: async daemon => {
    write('docs/a.md', 'changed\n')(daemon)
    const [expect, seen] = [await stampsOf(daemon), await headOf(daemon)]
    return () => daemon.client.call('POST /git/{repo}/discard', { ...seen, expect, ...more })
  },
  between,
  state: daemon => [git('status', '--porcelain')(daemon), read('docs/a.md')(daemon), refs(daemon)],
})

const filesNow = ({ workspace }: Support): { readonly [path: string]: string } =>
  Object.fromEntries(
    readdirSync(workspace, { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile() && !/\/(?:\.git|\.sandbox|origin\.git)(?:\/|$)/.test(`${entry.parentPath}/`))
      .map(entry => join(entry.parentPath, entry.name))
      .map(path => [path, readFileSync(path, 'latin1')]),
  )
const deleting = (path: string, between: YesCase['between'], more: object = {}): YesCase => ({
  look: async daemon => {
    write('docs/deep/a.txt', 'a\n')(daemon)
    const { stamp } = await daemon.client.call('DELETE /workspace/entry', { path, mode: 'check' })
    return () => daemon.client.call('DELETE /workspace/entry', { path, expect: stamp!, ...more })
  },
  between,
  state: filesNow,
})
/** A file that takes the place of another one, or of nothing. */
const replacing = (call: 'POST /workspace/move' | 'POST /workspace/copy', between: YesCase['between']): YesCase => ({
  look: async daemon => {
    write('from.txt', 'from\n')(daemon)
    const asked = { from: 'from.txt', to: 'docs/a.md', overwrite: true }
    const { stamp } = await daemon.client.call(call, { ...asked, mode: 'check' })
    return () => daemon.client.call(call, { ...asked, expect: stamp! })
  },
  between,
  state: filesNow,
})
/** Ways in which a file or what is below a folder becomes another one. */
const WRITES: readonly (readonly [what: string, path: string, between: YesCase['between']])[] = [
  ['a file is written', 'docs/a.md', write('docs/a.md', 'work of a person\n')],
  ['a file of the same length is written at the same time', 'docs/a.md', sameTime],
  ['another file takes its name', 'docs/a.md', ({ workspace }) => swapped(join(workspace, 'docs/a.md'))],
  ['a link takes its name', 'docs/a.md', ({ workspace }) => linked(join(workspace, 'docs/a.md'))],
  ['a folder takes its name', 'docs/a.md', ({ workspace }) => madeFolder(join(workspace, 'docs/a.md'))],
  ['a file comes into it', 'docs', write('docs/new.md', 'new\n')],
  ['a file deep in it is written', 'docs', write('docs/deep/a.txt', 'b\n')],
  ['a file deep in it goes', 'docs', ({ workspace }) => rmSync(join(workspace, 'docs/deep/a.txt'))],
  ['something comes where nothing was', 'nothing', write('nothing', 'something\n')],
  ['an empty folder comes', 'docs', ({ workspace }) => mkdirSync(join(workspace, 'docs/empty'))],
]

/** Each yes with what changes between, by call. */
export const yesCases = (t: Test): readonly (readonly [call: string, what: string, YesCase])[] => [
  [
    'POST /share',
    'another turn speaks',
    {
      look: async ({ client }) => {
        const { digest } = await client.call('POST /share/preview', asked)
        return () => client.call('POST /share', { ...asked, expect: digest })
      },
      between: says,
      state: sharedPages,
    },
  ],
  [
    'POST /share/update',
    'another turn speaks',
    {
      look: async ({ client }) => {
        const { id } = await client.call('POST /share', asked)
        const { digest } = await client.call('POST /share/preview', asked)
        return () => client.call('POST /share/update', { id, expect: digest })
      },
      between: says,
      state: sharedPages,
    },
  ],
  ['POST /public/publish', 'a file is written', publishing('docs/a.md', write('docs/a.md', 'other\n'))],
  ['POST /public/publish', 'a file comes into its folder', publishing('docs', write('docs/b.md', 'b\n'))],
  [
    'POST /public/publish',
    'a turn writes in its copy',
    publishing('theirs.md', ({ client }) => runTurn(client, 'copy', 'write theirs.md\n| two'), { agent: 'copy' }),
  ],
  ['POST /history/restore', 'a file is written', restoring(write('docs/a.md', 'work of a person\n'))],
  ['POST /history/restore', 'a file comes', restoring(write('docs/new.md', 'new\n'))],
  [
    'POST /history/restore',
    'the named file is written',
    restoring(write('docs/a.md', 'work of a person\n'), { scope: 'root', paths: ['docs/a.md'] }),
  ],
  [
    'POST /history/restore',
    'a file below the named folder comes',
    restoring(write('docs/new.md', 'new\n'), { scope: 'root', paths: ['docs'] }),
  ],
  [
    'POST /bundles/restore',
    'another bundle lies at the path',
    {
      look: async daemon => {
        const { name } = await packed(t, daemon)
        const path = brought(daemon, daemon, name)
        const { digest } = await daemon.client.call('POST /bundles/restore', { path, mode: 'check' })
        return () => daemon.client.call('POST /bundles/restore', { path, mode: 'apply', expect: digest })
      },
      between: async daemon => {
        write('docs/a.md', 'for another bundle\n')(daemon)
        brought(daemon, daemon, (await packed(t, daemon)).name)
      },
      state: read('docs/a.md'),
    },
  ],
  [
    'POST /git/{repo}/push',
    'an agent commits',
    {
      look: async daemon => {
        const seen = await headOf(daemon)
        return () => daemon.client.call('POST /git/{repo}/push', seen)
      },
      between: moves,
      state: refs,
    },
  ],
  [
    'POST /git/{repo}/push',
    'the named branch moves',
    {
      look: async daemon => {
        git('branch', '-f', 'other', 'HEAD')(daemon)
        const { expectHead } = await headOf(daemon)
        return () => daemon.client.call('POST /git/{repo}/push', { repo: 'root', branch: 'other', expectHead })
      },
      between: daemon => (moves(daemon), git('branch', '-f', 'other', 'HEAD')(daemon)),
      state: refs,
    },
  ],
  [
    'POST /git/{repo}/publish-file',
    'an agent commits',
    {
      look: async daemon => {
        const order = { ...(await headOf(daemon)), path: 'docs/a.md', content: 'published\n', message: 'publish' }
        return () => daemon.client.call('POST /git/{repo}/publish-file', order)
      },
      between: moves,
      state: daemon => [refs(daemon), read('docs/a.md')(daemon)],
    },
  ],
  [
    'POST /git/{repo}/publish-file',
    'the file is written',
    {
      look: async daemon => {
        const hash = hashOf(read('docs/a.md')(daemon)!)
        const order = { repo: 'root', path: 'docs/a.md', content: 'published\n', message: 'publish', baseHash: hash }
        return () => daemon.client.call('POST /git/{repo}/publish-file', order)
      },
      between: write('docs/a.md', 'work of a person\n'),
      state: daemon => [refs(daemon), read('docs/a.md')(daemon)],
    },
  ],
  [
    'POST /git/{repo}/tag/push',
    'the tag moves',
    {
      look: async daemon => {
        const { name, sha } = await tagOf(daemon)
        return () => daemon.client.call('POST /git/{repo}/tag/push', { repo: 'root', name, sha, remote: 'origin' })
      },
      between: daemon => (moves(daemon), git('tag', '-f', 'v1')(daemon)),
      state: refs,
    },
  ],
  [
    'POST /git/{repo}/tag/delete',
    'the tag moves',
    {
      look: async daemon => {
        const { name, sha } = await tagOf(daemon)
        return () => daemon.client.call('POST /git/{repo}/tag/delete', { repo: 'root', name, sha })
      },
      between: daemon => (moves(daemon), git('tag', '-f', '-a', '-m', 'm', 'v1')(daemon)),
      state: refs,
    },
  ],
  [
    'POST /git/{repo}/branches/delete',
    'the branch moves',
    {
      look: async daemon => {
        git('branch', '-f', 'work', 'HEAD')(daemon)
        const { branches } = await daemon.client.call('GET /git/{repo}/branches', { repo: 'root' })
        const { name, sha } = branches.find(one => one.name === 'work')!
        return () => daemon.client.call('POST /git/{repo}/branches/delete', { repo: 'root', name, sha, force: true })
      },
      between: daemon => (moves(daemon), git('branch', '-f', 'work', 'HEAD')(daemon)),
      state: refs,
    },
  ],
  ...(['merge', 'rebase', 'cherry-pick', 'revert', 'drop'] as const).map(
    call => [`POST /git/{repo}/${call}`, 'an agent commits', onHead(call)] as const,
  ),
  [
    'POST /git/{repo}/reset',
    'an agent commits',
    {
      look: async daemon => {
        const order = { ...(await headOf(daemon)), sha: inGit(daemon.workspace, 'rev-parse', 'HEAD~1').trim() }
        return () => daemon.client.call('POST /git/{repo}/reset', { ...order, mode: 'hard' })
      },
      between: moves,
      state: refs,
    },
  ],
  [
    'POST /git/{repo}/checkout',
    'an agent commits',
    {
      look: async daemon => {
        const order = { ...(await headOf(daemon)), ref: 'v1' }
        return () => daemon.client.call('POST /git/{repo}/checkout', order)
      },
      between: moves,
      state: refs,
    },
  ],
  [
    'POST /git/{repo}/pull',
    'an agent commits',
    {
      look: async daemon => {
        const order = await headOf(daemon)
        return () => daemon.client.call('POST /git/{repo}/pull', order)
      },
      between: moves,
      state: refs,
    },
  ],
  [
    'POST /git/{repo}/commit',
    'an agent commits',
    {
      look: async daemon => {
        const order = { ...(await headOf(daemon)), message: 'mine', all: true }
        return () => daemon.client.call('POST /git/{repo}/commit', order)
      },
      between: moves,
      state: refs,
    },
  ],
  [
    'POST /git/{repo}/undo',
    'an agent commits',
    {
      look: async daemon => {
        const { action } = await daemon.client.call('GET /git/{repo}/undo', { repo: 'root' })
        const { previousSha, sha } = action!
        return () => daemon.client.call('POST /git/{repo}/undo', { repo: 'root', previousSha, expectHead: sha })
      },
      // The same commit is below both, so that its id alone says nothing.
      between: ({ workspace }) => inGit(workspace, 'commit', '-q', '--amend', '-m', 'another'),
      state: refs,
    },
  ],
  ...(['abort', 'continue'] as const).map(
    call =>
      [
        `POST /git/{repo}/${call}`,
        'an agent concludes the merge and another one begins',
        {
          look: async (daemon: Support) => {
            conflict(daemon)
            const { head } = await daemon.client.call('GET /git/{repo}/operation', { repo: 'root' })
            const order = { repo: 'root', expectHead: head! }
            return () => daemon.client.call(`POST /git/{repo}/${call}`, order)
          },
          between: (daemon: Support) => {
            inGit(daemon.workspace, 'commit', '-q', '-a', '-m', 'concluded')
            conflict(daemon)
          },
          state: (daemon: Support) => [refs(daemon), read('.git/MERGE_HEAD')(daemon)],
          after: git('merge', '--abort'),
        },
      ] as const,
  ),
  ...(
    [
      ['a file is written', write('docs/a.md', 'work of a person\n')],
      ['a file comes', write('docs/new.md', 'new\n')],
      ['another text is staged', daemon => (write('docs/a.md', 'staged\n')(daemon), git('add', 'docs/a.md')(daemon))],
      ['an agent commits', moves],
    ] as const satisfies readonly (readonly [string, YesCase['between']])[]
  ).map(([what, between]) => ['POST /git/{repo}/discard', what, discarding(between)] as const),
  [
    'POST /git/{repo}/discard',
    'the named file is written with the same length',
    discarding(write('docs/a.md', 'CHANGED\n'), { paths: ['docs/a.md'] }),
  ],
  [
    'POST /git/{repo}/discard',
    'a file comes below the named folder',
    discarding(write('docs/new.md', 'new\n'), { paths: ['docs'] }),
  ],
  [
    'POST /git/{repo}/stage',
    'another text is staged',
    {
      look: async daemon => {
        write('docs/a.md', 'part one\npart two\n')(daemon)
        const { before = '' } = await daemon.client.call('GET /git/{repo}/file-diff', {
          ...{ repo: 'root', path: 'docs/a.md', side: 'unstaged' },
        })
        const order = { repo: 'root', paths: ['docs/a.md'], content: 'part one\n', baseHash: hashOf(before) }
        return () => daemon.client.call('POST /git/{repo}/stage', order)
      },
      between: git('add', 'docs/a.md'),
      state: git('ls-files', '-s'),
    },
  ],
  ...(['apply', 'drop'] as const).map(
    call =>
      [
        `POST /git/{repo}/stash/${call}`,
        'another stash takes its place',
        {
          look: async (daemon: Support) => {
            stash('one')(daemon)
            const { stashes } = await daemon.client.call('GET /git/{repo}/stashes', { repo: 'root' })
            const { ref, sha } = stashes[0]!
            return () => daemon.client.call(`POST /git/{repo}/stash/${call}`, { repo: 'root', ref, sha })
          },
          between: stash('two'),
          state: (daemon: Support) => [git('stash', 'list')(daemon), read('docs/a.md')(daemon)],
        },
      ] as const,
  ),
  [
    'PUT /workspace/file',
    'the file is written',
    {
      look: async daemon => {
        const hash = hashOf(read('docs/a.md')(daemon)!)
        return () => daemon.client.call('PUT /workspace/file', { path: 'docs/a.md', content: 'mine\n', baseHash: hash })
      },
      between: write('docs/a.md', 'work of a person\n'),
      state: read('docs/a.md'),
    },
  ],
  [
    'PUT /git/{repo}/file',
    'the file is written',
    {
      look: async daemon => {
        const hash = hashOf(read('docs/a.md')(daemon)!)
        const order = { repo: 'root', path: 'docs/a.md', content: 'mine\n', baseHash: hash }
        return () => daemon.client.call('PUT /git/{repo}/file', order)
      },
      between: write('docs/a.md', 'work of a person\n'),
      state: read('docs/a.md'),
    },
  ],
  [
    'POST /agent/rewind',
    'another turn speaks',
    {
      look: async ({ client }) => {
        await runTurn(client, 'back', 'write b.txt\n| 1', { isolated: true })
        await runTurn(client, 'back', 'write b.txt\n| 2')
        const { messages } = await client.call('GET /agents/{id}/transcript', { id: 'back' })
        const index = messages.findLast(({ role }) => role === 'user')!.index
        const expect = messages.at(-1)!.run!
        return () => client.call('POST /agent/rewind', { conversationId: 'back', index, expect })
      },
      between: ({ client }) => runTurn(client, 'back', 'write b.txt\n| 3'),
      state: async ({ client }) => (await client.call('GET /agents/{id}/transcript', { id: 'back' })).total,
    },
  ],
  [
    'POST /agent/reply',
    'the question is another one',
    {
      look: async ({ client }) => {
        await client.call('POST /agent', { conversationId: 'asks', prompt: QUESTIONS })
        const { requestId } = await framesOf(client, 'asks').until(({ kind }) => kind === 'question')
        return () =>
          client.call('POST /agent/reply', { kind: 'question', requestId: requestId!, answers: { 'One?': 'yes' } })
      },
      between: async ({ client }) => {
        const { cards } = await client.call('GET /agent/cards', { conversationId: 'asks' })
        const { requestId } = cards[0]!.card
        await client.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'One?': 'yes' } })
        await framesOf(client, 'asks').until(one => one.kind === 'question' && one.requestId !== requestId)
      },
      state: async ({ client }) =>
        (await client.call('GET /agent/cards', { conversationId: 'asks' })).cards.map(({ card }) => card.requestId),
      after: ({ client }) => client.call('POST /agent/stop', { conversationId: 'asks' }),
      answered: true,
    },
  ],
  ...WRITES.flatMap(([what, path, between]) => [
    ['DELETE /workspace/entry', what, deleting(path, between)] as const,
    ['DELETE /workspace/entry', `${what}, permanently`, deleting(path, between, { permanent: true })] as const,
  ]),
  ...(['POST /workspace/move', 'POST /workspace/copy'] as const).flatMap(call =>
    WRITES.filter(([, path]) => path === 'docs/a.md').map(
      ([what, , between]) => [call, what, replacing(call, between)] as const,
    ),
  ),
  [
    'POST /settings/patch',
    'somebody else saves',
    {
      look: async ({ client }) => {
        const { revision } = await client.call('POST /settings/patch', { set: { subagentsAtOnce: 1 } })
        return () => client.call('POST /settings/patch', { set: { subagentsAtOnce: 3 }, revision })
      },
      between: ({ client }) => client.call('POST /settings/patch', { set: { subagentsAtOnce: 2 } }),
      state: async ({ client }) => (await client.call('GET /settings')).subagentsAtOnce,
    },
  ],
  [
    'POST /automations/pending/{id}/approve',
    'its automation says something else',
    {
      look: async daemon => {
        const { client } = daemon
        await client.call('POST /automations', guarded('say what was shown'))
        const { token } = await client.call('POST /automations/{id}/token/rotate', { id: 'guarded' })
        const headers = { authorization: `Bearer ${token}` }
        await fetch(`${daemon.url}/automations/guarded/fire`, { method: 'POST', headers, body: 'p' })
        const { id, digest } = (await client.call('GET /automations/pending')).approvals[0]!
        return () => client.call('POST /automations/pending/{id}/approve', { id, expect: digest! })
      },
      between: ({ client }) => client.call('POST /automations', guarded('write evil.txt\n| not shown')),
      state: async ({ client }) => (await client.call('GET /automations/pending')).approvals.map(({ id }) => id),
    },
  ],
]
