import type { Client } from '../../sdk/client.js'
import { Refusal } from '../../sdk/refusal.js'
import { runs } from '../attack/support.js'
import { runTurn } from '../support/turns.js'
import {
  as,
  differences,
  filesOf,
  judge,
  OWN_BRANCHES,
  type Person,
  type Verdict,
  withoutOwn,
  workspaceOf,
} from './judge.js'
import type { Exhibit } from './repositories.js'

/** The repository, the daemon's client, and what was found. */
interface Visit {
  readonly client: Client
  readonly person: Person
  readonly exhibit: Exhibit
  readonly faults: string[]
}

const NEW = 'made/néw file.txt'

type Files = { [path: string]: string }

/** The files that the work of the journey leaves of these. */
const worked = (files: Files, { ignores }: Exhibit): Files => {
  const after = { ...files, ...(!ignores && { [latin(NEW)]: '- new\n' }) }
  if (files['a.txt']) after['a.txt'] = files['a.txt'].replace('two', 'two changed')
  if (files['b.txt']) after['made/b.txt'] = files['b.txt']
  for (const path of ['b.txt', 'c.txt']) delete after[path]
  return after
}

const latin = (text: string): string => Buffer.from(text).toString('latin1')

const script = (files: Files, also = ''): string =>
  [
    ...(files['a.txt'] ? ['edit a.txt', '| - two', '| + two changed'] : []),
    `write ${NEW}`,
    '| new',
    ...(files['b.txt'] ? ['move b.txt -> made/b.txt', 'delete c.txt'] : []),
    ...(also ? [runs(also)] : []),
  ].join('\n')

const sentence = (error: unknown): string =>
  error instanceof Refusal ? `${error.reason}, ${error.message}` : String(error)

/** Goes one step; what it returns or throws are its faults. */
const step = async (visit: Visit, name: string, work: () => Promise<readonly string[]>): Promise<boolean> => {
  const found = await work().catch((error: unknown) => [sentence(error)])
  visit.faults.push(
    ...found.map(fault => `${name}: ${fault.replaceAll(/\s+/g, ' ').replaceAll(visit.person.base, '')}`),
  )
  return found.length === 0
}

/** Expects a refusal with this sentence. */
const refused = async (expected: RegExp, work: Promise<unknown>): Promise<string[]> => {
  const answer = await work.then(
    found => `answered ${JSON.stringify(found).slice(0, 200)}`,
    (error: unknown) => sentence(error),
  )
  return expected.test(answer) ? [] : [answer]
}

/** Runs a turn in the private copy; returns what it says that went wrong. */
const turn = async (
  { client, exhibit: { notes } }: Visit,
  conversationId: string,
  prompt: string,
): Promise<string[]> => {
  const frames = await runTurn(client, conversationId, prompt, { isolated: true })
  return frames.flatMap(frame => {
    if (frame.kind === 'error') return `the turn says ${frame.message}`
    if (frame.kind === 'notice' && !notes?.test(frame.text)) return `the turn notes ${frame.text}`
    if (frame.kind === 'tool_call_update' && frame.status === 'failed')
      return `a tool says ${JSON.stringify(frame.content)}`
    return []
  })
}

/** How a repository was before the journey. */
interface Before {
  readonly verdict: Verdict
  readonly files: Files
}

const unchanged = async ({ person }: Visit, { verdict, files }: Before): Promise<string[]> => {
  const dir = workspaceOf(person)
  return [...differences(verdict, withoutOwn(verdict, await judge(person, dir))), ...differences(files, filesOf(dir))]
}

/** The paths of the first repository in the diff of a conversation, as `git diff --name-status` would call them. */
const diffOf = async (
  { client }: Visit,
  id: string,
): Promise<{ tips: { [repo: string]: string }; paths: string[] }> => {
  const { repos } = await client.call('GET /agents/{id}/diff', { id })
  return {
    tips: Object.fromEntries(repos.map(({ repo, tip }) => [repo, tip])),
    paths: repos
      .filter(({ repo }) => repo === 'root')
      .flatMap(({ changes }) =>
        changes.map(({ path, status, from }) => `${status} ${from ? `${from} -> ` : ''}${path}`),
      )
      .sort(),
  }
}

const expectedDiff = (files: Files, { ignores }: Exhibit): string[] =>
  [
    ...(ignores ? [] : [`added ${NEW}`]),
    ...(files['a.txt'] ? ['modified a.txt'] : []),
    ...(files['b.txt'] ? ['deleted c.txt', 'renamed b.txt -> made/b.txt'] : []),
  ].sort()

/** A new file has the line ends that its attributes give it. */
const inOwnLineEnds = (files: Files): Files => {
  const text = files[latin(NEW)]
  return text === undefined ? files : { ...files, [latin(NEW)]: text.replaceAll('\r', '') }
}

/** Whether the files are these and what else should land. */
const landedFiles = ({ exhibit, person }: Visit, before: Files): string[] => {
  const { also } = exhibit
  const now = inOwnLineEnds(filesOf(workspaceOf(person)))
  const expected = worked(before, exhibit)
  const { appends } = also ?? {}
  for (const [path, text] of Object.entries(before)) {
    if (appends?.test(path)) expected[path] = `${text}more${text.endsWith('\r\n') ? '\r\n' : '\n'}`
  }
  const own = Object.entries(also?.lands ?? {}).flatMap(([path, text]) => {
    const found = now[latin(path)]?.slice(2)
    delete now[latin(path)]
    delete expected[latin(path)]
    return (typeof text === 'string' ? found === text : found !== undefined && text.test(found))
      ? []
      : [`${path} holds ${JSON.stringify(found)}`]
  })
  const beside = Object.keys({ ...(!also && now), ...expected })
  const only = (files: Files) =>
    Object.fromEntries(beside.flatMap(path => (Object.hasOwn(files, path) ? [[path, files[path]!]] : [])))
  return [...own, ...differences(only(expected), only(now))]
}

/** The journey of one repository; returns what failed, a sentence each. */
export const journey = async (client: Client, person: Person, exhibit: Exhibit): Promise<string[]> => {
  const dir = workspaceOf(person)
  const visit: Visit = { client, person, exhibit, faults: [] }
  const before: Before = { verdict: await judge(person, dir), files: filesOf(dir) }
  if (exhibit.copies) {
    await step(visit, 'a private copy', () =>
      refused(
        exhibit.copies!,
        turn(visit, 'one', 'say hello').then(found => {
          if (found.length > 0) throw new Error(found.join('; '))
        }),
      ),
    )
    await step(visit, 'afterwards', () => unchanged(visit, before))
    return visit.faults
  }
  await step(visit, 'open', () => opens(visit))
  const worked = await step(visit, 'turn', () => turn(visit, 'one', script(before.files, exhibit.also?.run)))
  await step(visit, 'after the turn', () => unchanged(visit, before))
  if (!worked) return visit.faults
  await step(visit, 'diff', () => shows(visit, before))
  await step(visit, 'review', () => reviews(visit, before))
  await step(visit, 'rewind', () => rewinds(visit, before))
  await step(visit, 'discard', () => discards(visit))
  const { id: point = '' } = await client.call('POST /history/snapshots', { label: 'before' })
  const landed = await step(visit, 'land', () => lands(visit, before))
  if (landed && !exhibit.lands) await step(visit, 'restore', () => restores(visit, before, point))
  if (landed && !exhibit.lands) await step(visit, 'commit and undo', () => undoes(visit))
  await step(visit, 'git page', () => pages(visit))
  await step(visit, 'the end', () => ends(visit, before))
  return visit.faults
}

/** The files that git calls changed, as the daemon shows them; those of nested repositories are in these. */
const opens = async ({ client, person, exhibit: { lacks } }: Visit): Promise<string[]> => {
  const { files } = await client.call('GET /git/{repo}/status', { repo: 'root' })
  const without = lacks === undefined ? '' : `-c filter.${lacks}.required=false`
  const asked =
    `git -c status.renames=false ${without} status --porcelain=v1 -z --untracked-files=all 2>/dev/null `
    + '| tr "\\0" "\\n" | cut -c4-'
  const { text } = await as(person, asked, workspaceOf(person))
  const lines = text.split('\n').filter(line => line !== '')
  const expected = lines.filter(line => !line.endsWith('/'))
  const nested = lines.filter(line => line.endsWith('/')).map(line => line.slice(0, -1))
  const { repos } = await client.call('GET /git/changes', {})
  const alone = nested.filter(path => !repos.some(({ repo }) => latin(repo) === path))
  if (alone.length > 0) return [`${alone.join(', ')} is no repository of the workspace`]
  return differences({ files: expected.sort().join('\n') }, { files: files.map(latin).sort().join('\n') })
}

const shows = async (visit: Visit, { files }: Before): Promise<string[]> => {
  const { paths } = await diffOf(visit, 'one')
  const expected = expectedDiff(files, visit.exhibit)
  const more = visit.exhibit.also ? paths.filter(path => expected.includes(path)) : paths
  return differences({ diff: expected.join('\n') }, { diff: more.join('\n') })
}

/** Both sides of each changed file. */
const reviews = async ({ client, person, exhibit }: Visit, { files }: Before): Promise<string[]> => {
  const side = (path: string) => client.call('GET /agents/{id}/{repo}/file-diff', { id: 'one', repo: 'root', path })
  if (exhibit.ignores) return refused(/^not-found, /, side(NEW))
  const made = await side(NEW)
  const faults = made.after === 'new\n' && made.before === undefined ? [] : [`${NEW} shows ${JSON.stringify(made)}`]
  if (!files['a.txt']) return faults
  const { before = '', after } = await side('a.txt')
  const how = exhibit.shows ? '--filters' : 'blob'
  const main = (await as(person, `git --no-replace-objects cat-file ${how} HEAD:a.txt`, workspaceOf(person))).text
  if (before === '' || after === before) faults.push('a.txt shows no change')
  if (Buffer.from(before).toString('latin1') !== main) faults.push(`a.txt was ${JSON.stringify(before.slice(0, 80))}`)
  return faults
}

/** A further message is taken back. */
const rewinds = async (visit: Visit, before: Before): Promise<string[]> => {
  const { client } = visit
  const { paths } = await diffOf(visit, 'one')
  const found = await turn(visit, 'one', 'write second.txt\n| second\nwrite a.txt\n| overwritten')
  if (found.length > 0) return found
  const { messages } = await client.call('GET /agents/{id}/transcript', { id: 'one' })
  const index = messages.findLastIndex(({ role }) => role === 'user')
  await client.call('POST /agent/rewind', { conversationId: 'one', index })
  const now = await diffOf(visit, 'one')
  return [
    ...differences({ diff: paths.join('\n') }, { diff: now.paths.join('\n') }),
    ...(await unchanged(visit, before)),
  ]
}

/** Another conversation whose work is thrown away. */
const discards = async (visit: Visit): Promise<string[]> => {
  const { client, person } = visit
  const own = async () => (await as(person, OWN_BRANCHES, workspaceOf(person))).text
  const branches = await own()
  const found = await turn(visit, 'two', 'write a.txt\n| thrown away\nwrite other.txt\n| other')
  if (found.length > 0) return found
  await client.call('POST /agents/{id}/discard', { id: 'two' })
  return differences({ branches }, { branches: await own() })
}

const lands = async (visit: Visit, before: Before): Promise<string[]> => {
  const { client, person, exhibit } = visit
  const { tips } = await diffOf(visit, 'one')
  const landing = client.call('POST /agents/{id}/land', { id: 'one', expect: tips })
  if (exhibit.lands) return [...(await refused(exhibit.lands, landing)), ...(await unchanged(visit, before))]
  const { landed, conflicts } = await landing
  if (!landed) return [`is refused for ${JSON.stringify(conflicts)}`]
  const { status: _, submodules: __, ...rest } = before.verdict
  const { status: ___, submodules: ____, ...all } = withoutOwn(before.verdict, await judge(person, workspaceOf(person)))
  // Git shows a file that lands under an ignored name, because the index says that it is to be added.
  const now = exhibit.ignores ? { ...all, index: all.index?.replace(/^.*\tmade\/b\.txt\n/m, '') ?? '' } : all
  return [...landedFiles(visit, before.files), ...differences(rest, now)]
}

/** Goes back to the point before the landing, and lands again. */
const restores = async (visit: Visit, before: Before, point: string): Promise<string[]> => {
  const { client, exhibit } = visit
  const { failed, point: after } = await client.call('POST /history/restore', { id: point })
  const restored = filesOf(workspaceOf(visit.person))
  // No point has ignored files, so none is removed.
  if (exhibit.ignores) delete restored['made/b.txt']
  const faults = [
    ...failed.map(({ path, message }) => `${path ?? 'all'}: ${message}`),
    ...differences(before.files, restored),
  ]
  await client.call('POST /history/restore', { id: after })
  return [...faults, ...landedFiles(visit, before.files).map(fault => `back again: ${fault}`)]
}

/** Commits what landed, on the page of git, and takes that back. */
const undoes = async (visit: Visit): Promise<string[]> => {
  const { client, person, exhibit } = visit
  const head = async () => (await as(person, 'git rev-parse HEAD', workspaceOf(person))).text.trim()
  const was = await head()
  const path = exhibit.ignores ? 'a.txt' : NEW
  const commit = client.call('POST /git/{repo}/commit', { repo: 'root', message: 'Take it', paths: [path] })
  if (exhibit.commits) return refused(exhibit.commits, commit)
  const { committed } = await commit
  if (!committed || (await head()) === was) return ['nothing was committed']
  const named = (await as(person, 'git diff-tree -r --root --name-only -z HEAD~1 HEAD', workspaceOf(person))).text
  if (!named.split('\0').includes(latin(path))) return [`committed ${named}`]
  const { action, none } = await client.call('GET /git/{repo}/undo', { repo: 'root' })
  if (!action) {
    await as(person, 'git reset -q --soft HEAD~1', workspaceOf(person))
    return none === 'detached' || none === 'no-history' ? [] : [`nothing can be undone: ${none}`]
  }
  const { ok, reason } = await client.call('POST /git/{repo}/undo', { repo: 'root', previousSha: action.previousSha })
  if (!ok) return [`is not undone: ${reason}`]
  return (await head()) === was ? [] : ['HEAD is not where it was']
}

const pages = async ({ client }: Visit): Promise<string[]> => {
  const repo = 'root'
  await client.call('GET /git/changes', { repo })
  await client.call('GET /git/{repo}/branches', { repo })
  await client.call('GET /git/{repo}/worktrees', { repo })
  await client.call('GET /git/{repo}/operation', { repo })
  await client.call('GET /git/{repo}/files', { repo })
  const { commits } = await client.call('GET /git/{repo}/log', { repo })
  return commits.length > 0 ? [] : ['the log is empty']
}

/** Nothing of people is gone, and no branch of the conversation stays after it is discarded. */
const ends = async ({ client, person }: Visit, { verdict }: Before): Promise<string[]> => {
  await client.call('POST /agents/{id}/discard', { id: 'one' })
  const { refs, settings, stash, fsck } = await judge(person, workspaceOf(person))
  return differences(
    { refs: verdict.refs!, settings: verdict.settings!, stash: verdict.stash!, fsck: verdict.fsck! },
    { refs: refs!, settings: settings!, stash: stash!, fsck: fsck! },
  )
}
