import { execFile } from 'node:child_process'
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'

/** Who runs git, and the folder that holds everything of theirs. */
export interface Person {
  readonly base: string
  readonly user: number | undefined
}

/** The workspace of a person. */
export const workspaceOf = ({ base }: Pick<Person, 'base'>): string => join(base, 'w')

/** Of a larger file only the size counts. */
const MOST_READ = 1 << 20

/** Runs a shell command as a person; returns its exit code and its output, one character for each byte. */
export const as = (person: Person, command: string, cwd: string): Promise<{ code: number; text: string }> =>
  new Promise(resolve => {
    const { base, user } = person
    const env = {
      PATH: process.env.PATH,
      HOME: join(base, 'home'),
      LANG: 'C.UTF-8',
      GIT_CEILING_DIRECTORIES: base,
      GIT_OPTIONAL_LOCKS: '0',
      B: join(base, 'b'),
      W: workspaceOf(person),
    }
    const options = {
      cwd,
      env,
      encoding: 'latin1',
      maxBuffer: 1 << 28,
      ...(user !== undefined && { uid: user, gid: user }),
    } as const
    execFile('bash', ['-c', command], options, (error, out, err) =>
      resolve({ code: error ? Number(error.code ?? 1) : 0, text: out + err }),
    )
  })

/** What git says of a repository, by what it is about. */
export interface Verdict {
  readonly [about: string]: string
}

const QUESTIONS: Verdict = {
  refs: `git for-each-ref --format='%(refname) %(objectname)' 2>&1; git rev-parse HEAD; git symbolic-ref -q HEAD`,
  index: 'git ls-files -s -v',
  status: 'git -c color.ui=false status --porcelain=v2 --untracked-files=all --ignored',
  fsck: 'git fsck --no-dangling --no-progress 2>&1',
  settings: 'cd "$(git rev-parse --git-common-dir)" && cat config && ls hooks 2>&1',
  stash: 'git stash list --format=%H',
  submodules:
    "! git ls-files -s | grep -q '^160000' || git submodule --quiet foreach --recursive "
    + '"git rev-parse HEAD; git symbolic-ref -q HEAD; git status --porcelain=v2" 2>&1',
}

/** Between two answers of one shell: a shell for each question would take as long as git. */
const NEXT = '\n--- next answer ---\n'
const ASKED = Object.values(QUESTIONS)
  .map(command => `( ${command} ) 2>&1`)
  .join(`\nprintf '${NEXT.replaceAll('\n', '\\n')}'\n`)

/** The branches of the conversations in a repository. */
export const OWN_BRANCHES =
  "git for-each-ref --format='%(refname) %(objectname)' refs/heads/agent refs/heads/sandbox-agent refs/sandbox"

/** Asks git about a repository. */
export const judge = async (person: Person, dir: string): Promise<Verdict> => {
  const answers = (await as(person, ASKED, dir)).text.split(NEXT)
  const asked = Object.keys(QUESTIONS)
  if (answers.length !== asked.length) throw new Error(`${asked.length} questions, ${answers.length} answers`)
  return Object.fromEntries(asked.map((about, at) => [about, answers[at]!]))
}

/** All files of a folder without git's and the sandbox's own, each with its mode; names as bytes. */
export const filesOf = (folder: string): { [path: string]: string } => {
  const found: { [path: string]: string } = {}
  const walk = (below: string): void => {
    const at = Buffer.from(below === '' ? folder : `${folder}/${below}`, 'latin1')
    for (const name of readdirSync(at, { encoding: 'latin1' as never }) as string[]) {
      if (name === '.git' || name === '.sandbox') continue
      const path = below === '' ? name : `${below}/${name}`
      const place = Buffer.from(`${folder}/${path}`, 'latin1')
      const stat = lstatSync(place)
      if (stat.isDirectory()) walk(path)
      else if (stat.isSymbolicLink()) found[path] = `l ${readlinkSync(place)}`
      else if (stat.size > MOST_READ) found[path] = `large ${stat.size}`
      else found[path] = `${stat.mode & 0o111 ? 'x' : '-'} ${readFileSync(place, 'latin1')}`
    }
  }
  walk('')
  return found
}

const OWN = /^refs\/(?:heads\/(?:sandbox-)?agent|sandbox)\//

/** A verdict without the refs of conversations that came since another one. */
export const withoutOwn = (before: Verdict, after: Verdict): Verdict => {
  const known = new Set(before['refs']?.split('\n'))
  const lines = after['refs']?.split('\n').filter(line => known.has(line) || !OWN.test(line)) ?? []
  return { ...after, refs: lines.join('\n') }
}

/** What differs between two verdicts or lists of files, a line each. */
export const differences = (before: Verdict, after: Verdict): string[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap(about => {
    const [was, is] = [before[about], after[about]]
    if (was === is) return []
    const [lines, now] = [was?.split('\n') ?? ['nothing'], is?.split('\n') ?? ['nothing']]
    const gone = lines.filter(line => !now.includes(line)).map(line => `-${line}`)
    const come = now.filter(line => !lines.includes(line)).map(line => `+${line}`)
    return `${about}: ${[...gone, ...come].slice(0, 6).join(' ').slice(0, 400)}`
  })
