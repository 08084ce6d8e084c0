import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ownProgram } from '../../sdk/node/programs/own-programs.js'
import { USERS } from '../attack/users.js'
import { folderOf, spawnDaemon } from '../support/daemon.js'
import { spread } from '../support/lists.js'
import { journey } from './journey.js'
import { as, type Person, workspaceOf } from './judge.js'
import { EXHIBITS, type Exhibit } from './repositories.js'

const AT_ONCE = 2

const PRELUDE = `set -e
  export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=protocol.file.allow GIT_CONFIG_VALUE_0=always
  files() { printf 'one\\ntwo\\nthree\\n' > a.txt; echo b > b.txt; echo c > c.txt; mkdir -p sub; echo s > sub/s.txt; }
  begin() { files; git init -q -b main "$@" .; git add -A; git commit -qm first; }`

const made = async (t: Test, exhibit: Exhibit, user: number): Promise<Person> => {
  const base = folderOf(t)
  const person = { base, user: user === process.getuid?.() ? undefined : user }
  for (const folder of ['', 'b', 'w', 'home', 'data']) {
    mkdirSync(join(base, folder), { recursive: true })
    chownSync(join(base, folder), user, user)
    chmodSync(join(base, folder), folder === 'data' ? 0o700 : 0o755)
  }
  await as(
    person,
    'for s in user.name=Ada user.email=ada@example.org advice.graftFileDeprecated=false; do git config --global '
      + '"${s%%=*}" "${s#*=}"; done',
    base,
  )
  const { code, text } = await as(person, `${PRELUDE}\n${exhibit.make}`, workspaceOf(person))
  if (code !== 0) throw new Error(`${exhibit.name} was not made: ${text}`)
  if (exhibit.last)
    execFileSync('bash', ['-c', exhibit.last], { env: { W: workspaceOf(person), PATH: process.env.PATH } })
  return person
}

const missing = async ({ needs, ordinary }: Exhibit, user: number): Promise<string | undefined> => {
  if (ordinary && user === 0) return 'the superuser writes anything'
  if (needs && 'program' in needs) return (await ownProgram(needs.program)) ? undefined : `${needs.program} is missing`
  if (!needs) return undefined
  const [major = 0, minor = 0] = execFileSync('git', ['--version'], { encoding: 'utf8' }).match(/\d+/g)!.map(Number)
  const knows = major > needs.git[0] || (major === needs.git[0] && minor >= needs.git[1])
  return knows ? undefined : `git ${major}.${minor} does not know it`
}

/** The user that goes through a repository: the superuser and an ordinary one in turn, where a test may be either. */
const userOf = ({ ordinary }: Exhibit, at: number) => USERS[ordinary ? 1 : at % 2] ?? USERS[0]!

t.jobs = AT_ONCE
t.setTimeout(1_800_000)

/** Only the repositories whose names contain these words; without it a third of them, and two thirds in whole runs. */
const ONLY = process.env['SANDBOX_MUSEUM']
const SHOWN =
  ONLY === undefined
    ? spread(EXHIBITS, EXHIBITS.length / 3, (EXHIBITS.length * 2) / 3)
    : EXHIBITS.filter(({ name }) => ONLY.split('|').some(words => name.includes(words)))

for (const [at, exhibit] of EXHIBITS.entries()) {
  if (!SHOWN.includes(exhibit)) continue
  const [user, uid] = userOf(exhibit, at)
  t.test(`${exhibit.name}, of ${user}`, { buffered: true }, async t => {
    const lacks = await missing(exhibit, uid)
    if (lacks) return t.pass(`skipped: ${lacks}`)
    const person = await made(t, exhibit, uid)
    const workspace = workspaceOf(person)
    const config = join(person.base, 'deployment.json')
    writeFileSync(config, JSON.stringify({ wall: { read: exhibit.reads ? [join(person.base, 'b')] : [] } }))
    const { client } = await spawnDaemon(t, {
      workspace,
      data: join(person.base, 'data'),
      args: ['--config', config],
      env: {
        GIT_CEILING_DIRECTORIES: person.base,
        HOME: join(person.base, 'home'),
        XDG_STATE_HOME: undefined,
        GIT_CONFIG_GLOBAL: undefined,
      },
      ...(person.user !== undefined && { user: person.user }),
    })
    t.strictSame(await journey(client, person, exhibit), [], 'nothing fails')
  })
}
