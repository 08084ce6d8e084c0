import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Client } from '../../../sdk/client.js'
import { exactly } from '../../support/lists.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { answersOf, runs } from '../support.js'
import { landings, worldOf, type World } from './landing-world.js'

const FIND = 'grep -rl mallory "$(git rev-parse --git-dir)" --exclude-dir=objects --exclude-dir=logs --exclude-dir=refs'
const IN_GIT = 'd=$(git rev-parse --git-dir); mkdir -p "$d/hooks" "$d/info"'

/** What a turn can leave in its copy that no diff shows: how it is left, and what prints the name where it is. */
const LEFT: { readonly [what: string]: readonly [leave: string, look: string] } = {
  'an ignored program': ['mkdir -p build && echo mallory > build/tool', 'cat build/tool'],
  'an ignored file of settings': ['echo mallory > .env', 'cat .env'],
  'a repository in an ignored folder': ['git init -q build/own && echo mallory > build/own/x', 'cat build/own/x'],
  'a setting of another tree': [`${IN_GIT}; printf "[a]\\nb = mallory\\n" > "$d/config.worktree"`, FIND],
  'a hook': [`${IN_GIT}; printf "#!/bin/sh\\necho mallory" > "$d/hooks/pre-commit"`, FIND],
  'attributes of git': [`${IN_GIT}; echo "* mallory" >> "$d/info/attributes"`, FIND],
  'a file that is assumed to be unchanged': [
    'git update-index --assume-unchanged README.md && echo mallory > README.md',
    'cat README.md',
  ],
  'a file that is skipped in the tree': [
    'git update-index --skip-worktree run.sh && echo mallory > run.sh',
    'cat run.sh',
  ],
  'a file of the main line that is skipped and away': [
    'git update-index --skip-worktree away.txt && rm away.txt',
    'test -e away.txt || echo mallory',
  ],
  'a ref of its own': ['git update-ref refs/notes/mallory HEAD', 'git for-each-ref refs/notes'],
}
const FILES = { '.gitignore': 'build/\n.env\n', 'README.md': 'read\n', 'run.sh': 'true\n', 'away.txt': 'here\n' }
/** What only exclusions of the copy itself ignore is in the diff all the same. */
const HIDES = runs(`${IN_GIT}; echo hidden >> "$d/info/exclude"; echo hidden > hidden`)
const CUT = '-- next --'

const turnOf = async (client: Client, prompt: string): Promise<string> =>
  answersOf(await runTurn(client, 'c', prompt, { isolated: true }))
    .map(({ text }) => text)
    .join('\n')

const leave = (client: Client) =>
  turnOf(
    client,
    `write theirs.txt\n| theirs\n${HIDES}\n${runs(
      Object.values(LEFT)
        .map(([command]) => `(${command})`)
        .join('; '),
    )}`,
  )

const found = async (client: Client): Promise<string[]> => {
  const looks = Object.values(LEFT).map(([, look]) => `(${look}) 2>/dev/null; echo "${CUT}"`)
  const parts = (await turnOf(client, runs(looks.join('; ')))).split(CUT)
  return Object.keys(LEFT).filter((_, at) => /mallory|hooks|attributes|config\.worktree/.test(parts[at] ?? ''))
}

const land = ({ owner }: World) => owner.call('POST /agents/{id}/land', { id: 'c', force: true })

for (const who of ['collaborator', 'token'] as const) {
  t.test(`a turn that lands by itself finds nothing of what a ${who} left in its copy`, async t => {
    const world = await worldOf(t, who, { files: FILES })
    const { owner, other, daemon } = world
    await leave(other)
    t.same(await found(other), Object.keys(LEFT), 'each is really left')
    const held = await runTurn(owner, 'c', 'write also.txt\n| also', { autoLand: true })
    t.match(landings(held), exactly({ landed: false, held: true }))
    t.match(await land(world), { landed: true })
    for (const file of ['theirs.txt', 'hidden'])
      t.ok(existsSync(join(daemon.workspace, file)), `${file} was in the diff`)
    await owner.call('POST /agents/{id}/auto-land', { id: 'c', autoLand: true })
    t.same(await found(owner), [])
    const frames = await runTurn(owner, 'c', 'write mine.txt\n| mine')
    t.match(landings(frames), exactly({ landed: true }))
    t.ok(existsSync(join(daemon.workspace, 'mine.txt')))
    t.match(await turnOf(owner, runs('cat theirs.txt also.txt mine.txt')), /^theirs\nalso\nmine$/)
  })
}

/** A conversation of the owner into whose running turn somebody speaks who may not land. */
const spokenInto = async (t: Test): Promise<World> => {
  const world = await worldOf(t, 'collaborator', { files: FILES })
  const { owner, other } = world
  await owner.call('POST /agent', {
    ...{ conversationId: 'c', isolated: true },
    prompt: `ask Go on?\n| yes: on\nwait words 60000\n${runs('echo mallory > .env')}\nwrite w.txt\n| w`,
  })
  const watched = framesOf(owner, 'c')
  const { requestId } = await watched.until(({ kind }) => kind === 'question')
  await owner.call('POST /agent/reply', { kind: 'question', requestId: requestId!, answers: { 'Go on?': 'yes' } })
  await other.call('POST /agent/steer', { conversationId: 'c', text: 'more words' })
  await watched.all()
  return world
}

t.test('words of somebody who may not land in a running turn count as well', async t => {
  const world = await spokenInto(t)
  t.equal(await turnOf(world.other, runs('cat .env')), 'mallory')
  t.match(await land(world), { landed: true })
  t.match(await turnOf(world.owner, runs('cat .env || true')), /No such file/)
})

t.test('a copy that cannot be made anew is kept, and its next turn does not land by itself', async t => {
  const world = await worldOf(t, 'collaborator', { files: FILES })
  const { owner, other, daemon } = world
  await turnOf(other, 'write theirs.txt\n| theirs')
  await turnOf(other, runs('git checkout -q --detach'))
  t.match(await land(world), { landed: true })
  await owner.call('POST /agents/{id}/auto-land', { id: 'c', autoLand: true })
  const frames = await runTurn(owner, 'c', 'write mine.txt\n| mine')
  t.ok(landings(frames).every(frame => frame.kind === 'landed' && !frame.landed))
  t.notOk(existsSync(join(daemon.workspace, 'mine.txt')))
})
