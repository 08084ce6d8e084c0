import type { AgentChange, AgentChanges, ExpectedTips, LandResult, TwoSides } from '../../../plugins/agents/contract.js'
import { type Client, Unreached } from '../../client.js'
import { Refusal } from '../../refusal.js'
import { bytesWords } from '../../sizes.js'
import { askedAs } from '../calls/asked-as.js'
import { printResult } from '../terminal/asked.js'
import { connected } from '../daemon/connection.js'
import { confirmed } from '../terminal/confirm.js'
import { conversationOf } from '../follow/newest.js'
import { SELF } from '../terminal/own-name.js'
import { compare, hunks } from '../follow/patch.js'
import { conflictLines } from '../follow/card-lines.js'
import { counted, jsonLine, oneLine, plain, quoted, stylesOf, type Styles } from '../terminal/text.js'
import { CommandFailure, CONVERSATIONS, CONNECTION, EXIT, misused, type Terminal, type Verb } from '../verb.js'
import { say, write } from '../terminal/write.js'

/** Lists all conversations with their branch status. */
export const agentsVerb: Verb = {
  name: 'agents',
  group: 'agents',
  usage: '',
  summary: 'list the conversations',
  examples: ['agents', 'agents --json'],
  flags: CONNECTION,
  most: 0,
  run: (terminal, given) =>
    askedAs(terminal, given, ['agents', 'list'], (client, options) => client.call('GET /agents', undefined, options)),
}

/** Shows what a conversation changed. */
export const diff: Verb = {
  name: 'diff',
  usage: '[CONVERSATION]',
  summary: 'show everything a conversation changed; default: the newest one',
  examples: ['diff', 'diff c-1 --stat'],
  ids: CONVERSATIONS,
  flags: { stat: { help: 'only the list of files' }, ...CONNECTION },
  most: 1,
  run: (terminal, given) =>
    connected(terminal, given, async ({ client }) => {
      const id = await conversationOf(terminal, client, given)
      const changes = await showDiff(terminal, client, id, { json: given.on('json'), stat: given.on('stat') })
      const { dim } = stylesOf(terminal.colour)
      if (!given.on('json') && owedOf(changes).length > 0) {
        const tips = Object.entries(shownTips(changes)).map(([repo, tip]) => (repo === 'root' ? tip : `${repo}=${tip}`))
        const words = tips.map(tip => ` --expect ${quoted(oneLine(tip))}`).join('')
        say(terminal, `${dim(`land exactly this with ${SELF} land ${quoted(oneLine(id))}${words}`)}\n`)
      }
      return EXIT.ok
    }),
}

/** Brings a conversation's work into the workspace. */
export const land: Verb = {
  name: 'land',
  usage: '[CONVERSATION]',
  summary: 'land the work in the workspace as uncommitted changes; default: the newest one',
  examples: ['land', 'land c-1 --merge', 'land c-1 --expect 7a0c41d9be3f5d1c2b8e6f4a90d37c15e8b2f604'],
  notes: [
    'It lands what the conversation has changed when the command starts, and refuses what is changed after that. With',
    '--expect, as sandbox diff prints it, it lands exactly what that diff showed.',
    'New conversations start from the last commit: with --commit, what landed is committed at once, and nothing else.',
  ],
  ids: CONVERSATIONS,
  flags: {
    expect: { value: '[REPOSITORY=]TIP', multiple: true, help: 'land only work with this tip, as a diff showed it' },
    force: { help: 'land even while the agent is writing' },
    cumulative: { help: 'also land work that was landed before and reverted since' },
    merge: { help: 'write conflict markers where the main line changed' },
    commit: { value: 'MESSAGE', help: 'also commit the files that landed, with this message' },
    ...CONNECTION,
  },
  most: 1,
  run: (terminal, given) =>
    connected(terminal, given, async ({ client }) => {
      const how = {
        ...(given.on('force') && { force: true }),
        ...(given.on('cumulative') && { span: 'cumulative' as const }),
        ...(given.on('merge') && { mode: 'merge' as const }),
        ...(given.all('expect').length > 0 && { expect: expectedTips(given.all('expect')) }),
      }
      const message = given.text('commit')
      if (message?.trim() === '') misused('expected --commit MESSAGE, found an empty message')
      const json = given.on('json')
      return landWork(terminal, client, await conversationOf(terminal, client, given), how, {
        json,
        ...(message !== undefined && { message }),
      })
    }),
}

const expectedTips = (all: readonly string[]): ExpectedTips =>
  Object.fromEntries(
    all.map(text => {
      const at = text.lastIndexOf('=')
      return at < 0 ? ['root', text] : [text.slice(0, at), text.slice(at + 1)]
    }),
  )

/** What a diff showed of each repository, as `expect` takes it. */
export const shownTips = ({ repos }: AgentChanges): ExpectedTips =>
  Object.fromEntries(repos.map(({ repo, tip }) => [repo, tip]))

/** What the workspace does not have yet. */
export const owedOf = ({ repos }: AgentChanges): AgentChange[] =>
  repos.flatMap(({ changes }) => changes).filter(({ landed }) => !landed)

/** Discards a conversation's work. */
export const discard: Verb = {
  name: 'discard',
  usage: '[CONVERSATION]',
  summary: 'discard the work; what was landed stays; default: the newest one',
  examples: ['discard c-1', 'discard c-1 --yes'],
  notes: ['It asks before work is lost. Without a terminal it then requires --yes.'],
  ids: CONVERSATIONS,
  flags: { yes: { short: 'y', help: 'also discard work that has not landed' }, ...CONNECTION },
  most: 1,
  run: (terminal, given) =>
    connected(terminal, given, async ({ client }) => {
      const { signal } = terminal
      const id = await conversationOf(terminal, client, given)
      const { lost, expect } = await wouldBeLost(client, id, signal)
      if (
        lost !== undefined
        && !given.on('yes')
        && !(await confirmed(terminal, given, `${lost}: discard it?`, '--yes'))
      )
        return EXIT.refused
      return printResult(
        terminal,
        given,
        await client.call('POST /agents/{id}/discard', { id, ...(expect && { expect }) }, { signal }),
        () => `discarded ${oneLine(id)}`,
      )
    }),
}

/** Describes the work that a discard would lose, with what was looked at; `lost` is undefined for none. */
const wouldBeLost = async (
  client: Client,
  id: string,
  signal: AbortSignal,
): Promise<{ lost?: string; expect?: ExpectedTips }> => {
  const { branch, startedAt } = await client.call('GET /agents/{id}', { id }, { signal })
  if (startedAt !== undefined) return { lost: `${oneLine(id)} is at work` }
  if (branch === undefined) return {}
  const changes = await client.call('GET /agents/{id}/diff', { id }, { signal })
  const owed = owedOf(changes).length
  const lost = `${counted(owed, 'file')} of ${oneLine(id)} ${owed === 1 ? 'is' : 'are'} not in the workspace`
  return { expect: shownTips(changes), ...(owed > 0 && { lost }) }
}

const LETTER: { readonly [status: string]: string } = {
  added: 'A',
  modified: 'M',
  deleted: 'D',
  renamed: 'R',
  'type-changed': 'T',
  conflicted: 'C',
}

/** Prints a conversation's changes, as a list or with every file's hunks; returns them. */
export const showDiff = async (
  terminal: Terminal,
  client: Client,
  id: string,
  { json = false, stat = false } = {},
): Promise<AgentChanges> => {
  const { signal } = terminal
  const changes = await client.call('GET /agents/{id}/diff', { id }, { signal })
  if (json) {
    await write(terminal, jsonLine(changes))
    return changes
  }
  const styles = stylesOf(terminal.colour)
  const all = changes.repos.flatMap(({ repo, changes }) => changes.map(change => ({ repo, change })))
  if (all.length === 0) await write(terminal, 'nothing was changed\n')
  for (const { repo, change } of all) {
    if (stat || change.tooLarge !== undefined) {
      await write(terminal, `${headOf(repo, change, styles)}\n`)
      continue
    }
    const { lines, counts } = await client
      .call('GET /agents/{id}/{repo}/file-diff', { id, repo, path: change.path }, { signal })
      .then(sides => shownSides(sides, styles), cannotBeShown)
    const head = headOf(repo, { ...change, ...counts }, styles)
    await write(terminal, [head, ...lines].map(line => `${line}\n`).join(''))
  }
  if (changes.conflicts)
    await write(
      terminal,
      `${[styles.yellow('does not land today:'), ...conflictLines(changes.conflicts)].join('\n')}\n`,
    )
  return changes
}

interface ShownSides {
  readonly lines: readonly string[]
  /** Of the lines that are shown: the file may have changed since it was listed. Absent: not all of it is shown. */
  readonly counts?: Pick<AgentChange, 'additions' | 'deletions'>
}

const shownSides = ({ binary, before = '', after = '', truncated }: TwoSides, styles: Styles): ShownSides => {
  if (binary) return { lines: ['binary'] }
  const patch = compare(before, after)
  const marked = (mark: '+' | '-') => patch.filter(line => line.mark === mark).length
  const lines = hunks(patch).map(line => coloured(plain(line), styles))
  if (truncated) return { lines: [...lines, '… cut short'] }
  return { lines, counts: { additions: marked('+'), deletions: marked('-') } }
}

/** One file that cannot be shown hides no other. */
const cannotBeShown = (error: unknown): ShownSides => {
  if (error instanceof Unreached || !(error instanceof Refusal)) throw error
  return { lines: [`cannot be shown: ${oneLine(error.message)}`] }
}

const headOf = (
  repo: string,
  { path, from, status, additions, deletions, landed, tooLarge }: AgentChange,
  { bold, dim, green, red }: Styles,
): string => {
  const name = `${repo === 'root' ? '' : `${oneLine(repo)}/`}${from ? `${oneLine(from)} -> ` : ''}${oneLine(path)}`
  if (tooLarge !== undefined)
    return `${LETTER[status] ?? '?'} ${bold(name)}  ${bytesWords(tooLarge)}: too large to be shown or to land`
  const counts =
    additions === undefined && deletions === undefined
      ? 'binary'
      : `${green(`+${additions ?? 0}`)} ${red(`-${deletions ?? 0}`)}`
  return `${LETTER[status] ?? '?'} ${bold(name)}  ${counts}${landed ? dim('  landed') : ''}`
}

const coloured = (line: string, { green, red, dim }: Styles): string =>
  line.startsWith('@@') ? dim(line) : line.startsWith('+') ? green(line) : line.startsWith('-') ? red(line) : line

/**
 * Lands and prints the outcome; conflicts have their own exit code. Without `expect`, lands what the conversation has
 * changed by now.
 */
export const landWork = async (
  terminal: Terminal,
  client: Client,
  id: string,
  how: { force?: boolean; span?: 'cumulative'; mode?: 'merge'; expect?: ExpectedTips },
  { json = false, message }: { readonly json?: boolean; readonly message?: string } = {},
): Promise<number> => {
  const { signal } = terminal
  const changes = await client.call('GET /agents/{id}/diff', { id }, { signal })
  const outstanding = owedOf(changes).filter(({ tooLarge }) => tooLarge === undefined).length
  const result = await client.call('POST /agents/{id}/land', { id, expect: shownTips(changes), ...how }, { signal })
  await write(terminal, json ? jsonLine(result) : `${landingLines(result, outstanding, terminal.colour).join('\n')}\n`)
  // The repositories of a workspace are independent: one that refuses does not undo another.
  if (!result.landed) return wroteOf(result).length > 0 ? EXIT.failed : EXIT.refused
  if (message === undefined) {
    if (!json) await write(terminal, uncommittedLines(result))
    return EXIT.ok
  }
  if (result.resolving?.length)
    throw new CommandFailure(EXIT.refused, 'nothing was committed: resolve the conflict markers first')
  await commitLanded(terminal, client, result, { json, message })
  return EXIT.ok
}

/** So many files of a repository are committed by their names. */
const MOST_COMMITTED = 500

/** Commits what a landing wrote, and nothing else. */
const commitLanded = async (
  terminal: Terminal,
  client: Client,
  { uncommitted = [] }: LandResult,
  { json, message }: { readonly json: boolean; readonly message: string },
): Promise<void> => {
  const { signal } = terminal
  for (const { repo, paths } of uncommitted) {
    if (paths.length > MOST_COMMITTED)
      throw new CommandFailure(
        EXIT.refused,
        `${counted(paths.length, 'file')} of ${oneLine(repo)} were not committed, more than ${MOST_COMMITTED}: `
          + `${SELF} git commit ${quoted(message)} --repo ${quoted(repo)} --all commits everything there`,
      )
    const { committed, head } = await client
      .call('POST /git/{repo}/commit', { repo, message, paths, only: true }, { signal })
      .catch((error: unknown) => {
        if (!(error instanceof Refusal)) throw error
        const reason = `it landed and was not committed: ${oneLine(error.message)}`
        throw new CommandFailure(EXIT.failed, `${reason}; commit it with ${SELF} git commit or with git`)
      })
    const words = committed
      ? `committed: ${counted(paths.length, 'file')} as ${head?.slice(0, 12)}`
      : 'nothing to commit'
    await write(terminal, json ? jsonLine({ repo, committed, head }) : `${words}\n`)
  }
  if (uncommitted.length === 0 && !json) await write(terminal, 'nothing to commit\n')
}

/** So many files are named in a command that is suggested. */
const MOST_SUGGESTED = 3

/** The line that says what a landing leaves to be committed. */
const uncommittedLines = ({ uncommitted = [], resolving = [] }: LandResult): string => {
  const [first] = uncommitted
  if (!first || resolving.length > 0) return ''
  const repo = first.repo === 'root' ? '' : ` --repo ${quoted(oneLine(first.repo))}`
  const named = first.paths.map(path => ` --paths ${quoted(oneLine(path))}`).join('')
  const what = first.paths.length > MOST_SUGGESTED ? ' --all' : `${named} --only`
  return `new conversations start from the last commit, without it; next: ${SELF} git commit "MESSAGE"${repo}${what}\n`
}

/** The repositories that a landing wrote in. */
const wroteOf = ({ uncommitted = [], moved = [] }: LandResult): string[] => [
  ...new Set([...uncommitted, ...moved].map(({ repo }) => repo)),
]

/** The lines that say how a landing ended. */
export const landingLines = (result: LandResult, outstanding: number, colour: boolean): string[] => {
  const { landed, conflicts = [], resolving = [], tooLarge = [], moved = [], ignored = [] } = result
  const { green, yellow } = stylesOf(colour)
  const large = tooLarge.map(({ reason }) => yellow(`  ${oneLine(reason)}`))
  const said = [
    ...moved.map(({ repo, commit }) => `  ${oneLine(repo)} is on ${commit.slice(0, 12)} now: commit the pointer to it`),
    ...ignored.flatMap(({ repo, paths }) =>
      paths.map(path => `  ${placeIn(repo, path)}: git ignores its name, and shows it all the same`),
    ),
    ...large,
  ]
  if (!landed) {
    const wrote = wroteOf(result).map(repo => (repo === 'root' ? 'the workspace' : oneLine(repo)))
    const partly = wrote.length > 0 ? [green(`landed in ${wrote.join(', ')}`)] : []
    return [...partly, yellow('not landed:'), ...conflictLines(conflicts), ...said]
  }
  if (outstanding === 0 && large.length > 0) return [yellow('nothing landed:'), ...large]
  if (outstanding === 0 && said.length > 0) return [green('landed:'), ...said]
  if (outstanding === 0) return [green('landed: nothing was outstanding, the workspace already has all changes')]
  return [
    green(
      `landed: ${counted(outstanding, 'file')} ${outstanding === 1 ? 'is' : 'are'} in the workspace as `
        + 'uncommitted changes',
    ),
    ...resolving.flatMap(({ repo, paths }) =>
      paths.map(path => yellow(`  ${placeIn(repo, path)}: contains conflict markers; resolve them`)),
    ),
    ...said,
  ]
}

const placeIn = (repo: string, path: string): string => `${repo === 'root' ? '' : `${oneLine(repo)}/`}${oneLine(path)}`
