import type { Test } from 'tap'
import { ROUTED } from '../calls.js'

/** What stands where a plain file is expected; opening some of these, or reading them, never ends. */
const KINDS: { readonly [what: string]: string } = {
  'a pipe': 'mkfifo "$p"',
  'a link to a pipe': 'mkfifo -m 600 "$p.other" && ln -s "$(basename "$p").other" "$p"',
  'a socket':
    "python3 -c \"import os, socket; os.chdir(os.path.dirname('$p') or '.'); "
    + "socket.socket(socket.AF_UNIX).bind(os.path.basename('$p'))\"",
  'a link to a device without an end': 'ln -s /dev/zero "$p"',
  'a link to a terminal': 'ln -s /dev/tty "$p"',
  'a link to itself': 'ln -s "$(basename "$p")" "$p"',
  'a folder': 'mkdir "$p"',
  'a file of 600 MiB without bytes': 'truncate -s 600M "$p"',
}

const PIPE = KINDS['a pipe']!

/** The command that puts another kind at each of these paths, and another one in the next round; first pipes alone. */
export const replacing = (names: readonly string[], round: number): string => {
  const makes = Object.values(KINDS)
  const lines = names.map((name, at) => {
    const make = round === 0 ? PIPE : makes[(at + round) % makes.length]!
    return `p='${name}'; mkdir -p "$(dirname "$p")"; rm -rf "$p"; ${make}`
  })
  return `${lines.join('; ')}; echo MADE`
}

/** What a turn may leave in its private copy, by the commands that make it; `left` names what cannot be committed. */
export const LEFT: readonly { readonly what: string; readonly command: string; readonly left?: string }[] = [
  ...['.gitignore', '.gitattributes', '.gitmodules', '.mailmap', 'docs/.gitignore', 'docs/.gitattributes'].map(
    path => ({
      what: `a pipe as ${path}`,
      command: `p=${path}; rm -f $p; ${PIPE}`,
    }),
  ),
  { what: 'a socket as .gitignore', command: `p=.gitignore; rm $p; ${KINDS['a socket']}` },
  ...['a pipe', 'a socket'].map(kind => ({
    what: `${kind} in the place of a file`,
    command: `p=README.md; rm $p; ${KINDS[kind]}`,
    left: 'README.md',
  })),
  ...['a pipe', 'a socket'].map(kind => ({
    what: `${kind} in the place of a staged file`,
    command: `p=new; echo x > $p; git add $p; rm $p; ${KINDS[kind]}`,
    left: 'new',
  })),
  {
    what: 'a pipe that is to be added',
    command: 'echo x > later; git add -N later; rm later; mkfifo later',
    left: 'later',
  },
  { what: 'three hundred pipes', command: 'for n in $(seq 300); do mkdir d$n; mkfifo d$n/.gitignore; done' },
]

/** Files that some call looks for by name, or that a call is given. */
export const NAMES: readonly string[] = [
  ...['package.json', 'package-lock.json', 'pnpm-workspace.yaml', 'tsconfig.json', 'README.md', 'AGENTS.md'],
  ...['.gitignore', '.gitattributes', '.gitmodules', '.env', '.mcp.json', '.gitlab-ci.yml', 'Dockerfile', 'knip.json'],
  ...['.github/workflows/ci.yml', 'Cargo.toml', 'go.mod', 'pyproject.toml', 'requirements.txt', 'CLAUDE.md'],
  ...[
    'app/package.json',
    'app/vite.config.ts',
    'dist/index.js',
    'src/main.vue',
    'src/a.ts',
    'docs/a.docx',
    'docs/a.pdf',
  ],
  ...['docs/a.png', 'docs/a.zip', 'skill/SKILL.md', 'public/a.txt', '.git/info/exclude', '.git/COMMIT_EDITMSG'],
  ...['.git/description', '.git/FETCH_HEAD', '.git/MERGE_MSG', '.git/shallow', '.git/info/attributes'],
]

const json = (path: string, body: object, method = 'POST') => ({ method, path, body: JSON.stringify(body) })
const get = (path: string) => ({ method: 'GET', path, body: undefined })

/** A request whose answer must come, whatever stands in the tree. */
export interface Asked {
  readonly method: string
  readonly path: string
  readonly body: string | undefined
}

/** Every read that needs nothing but ids. */
export const READS: readonly Asked[] = [
  ...new Set(
    ROUTED.filter(({ method, access }) => method === 'GET' && !('open' in access)).map(({ call }) =>
      call
        .split(' ')[1]!
        .replace('{repo}', 'root')
        .replace('{id}', 'copy')
        .replace(/\{\w+\}/g, 'x'),
    ),
  ),
].map(get)

/** Every call that is given the path of a file, with a path. */
export const callsWith = (path: string): readonly Asked[] => {
  const q = encodeURIComponent(path)
  return [
    ...[`/workspace/file?path=${q}`, `/workspace/raw?path=${q}`, `/workspace/derived?path=${q}`],
    ...[`/workspace/children?path=${q}`, `/workspace/resolve?path=${q}`, `/workspace/classify?path=${q}`],
    ...[`/git/root/file?path=${q}`, `/git/root/blame?path=${q}`, `/git/root/log?path=${q}`],
    ...[`/git/root/file-diff?path=${q}&side=unstaged`, `/git/root/file-diff?path=${q}&side=staged`],
    ...[`/diff/rendered?path=${q}&source=changes&repo=root&side=unstaged`, `/agents/copy/root/file-diff?path=${q}`],
    ...[`/history/snapshots?path=${q}`],
  ]
    .map(get)
    .concat([
      json('/workspace/derive', { path }) as never,
      json('/workspace/file', { path, content: 'x', baseHash: '0'.repeat(64) }, 'PUT') as never,
      json('/git/root/file', { path, content: 'x', baseHash: '0'.repeat(64) }, 'PUT') as never,
      json('/workspace/media-ticket', { path }) as never,
      json('/workspace/unpack', { path }) as never,
      json('/workspace/upload-diff', { files: [{ path, size: 1, hash: '0'.repeat(64) }] }) as never,
      json('/secrets/import', { path }) as never,
      json('/public/publish', { path }) as never,
      json('/bundles/restore', { path, mode: 'merge' }) as never,
      json('/agent', {
        prompt: `read ${path}`,
        conversationId: `r-${path.replace(/\W/g, '-')}`,
        attachments: [path],
      }) as never,
    ])
}

/** Calls that read the whole tree, or all of a folder. */
export const WHOLE: readonly Asked[] = [
  ...['text', 'name', 'symbols'].map(mode => get(`/workspace/search?query=plain&mode=${mode}`)),
  get('/workspace/search?query=plain&includeIgnored=true'),
  get('/workspace/health?repo=root'),
  ...['bundle', 'ui', 'deps', 'unused'].map(id => json('/chores/probe', { repo: 'root', id })),
  json('/skills/import', { from: { kind: 'path', path: 'skill' } }),
  json('/public/publish', { path: 'docs', as: 'docs' }),
  json('/workspace/download-ticket', { paths: ['docs', 'src'] }),
  json('/git/root/stage', { paths: ['.'] }),
  json('/git/root/stash', { includeUntracked: true }),
  json('/workspace/copy', { from: 'docs', to: 'docs-2' }),
  json('/workspace/move', { from: 'docs-2', to: 'docs-3' }),
  json('/workspace/entry', { path: 'docs-3' }, 'DELETE'),
  json('/bundles', {}),
]

/** Makes requests, eight at once; those without an answer in time are returned, with how long the slowest took. */
export const unanswered = async (
  t: Pick<Test, 'comment'>,
  { url, session }: { readonly url: string; readonly session: string },
  all: readonly Asked[],
  within: number,
): Promise<string[]> => {
  const late: string[] = []
  const todo = [...all]
  let [slowest, which] = [0, '']
  const work = async () => {
    for (let next = todo.shift(); next; next = todo.shift()) {
      const { method, path, body } = next
      const began = performance.now()
      try {
        const answer = await fetch(url + path, {
          method,
          headers: { authorization: `Bearer ${session}`, 'content-type': 'application/json' },
          ...(body !== undefined && { body }),
          signal: AbortSignal.timeout(within),
          redirect: 'manual',
        })
        if (answer.headers.get('content-type')?.startsWith('text/event-stream')) await answer.body?.cancel()
        else for await (const _ of answer.body ?? []);
      } catch (error) {
        late.push(`${method} ${path} ${body ?? ''}: ${String(error)}`)
      }
      const took = performance.now() - began
      if (took > slowest) [slowest, which] = [took, `${method} ${path}`]
    }
  }
  await Promise.all(Array.from({ length: 8 }, work))
  t.comment(`${all.length} requests, the slowest ${Math.round(slowest)} ms: ${which}`)
  return late
}
