import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { IndexStore } from '../../../plugins/workspace/search/index/index-store.js'
import { likeWords } from '../../../plugins/workspace/search/index/like-words.js'
import { Meaning } from '../../../plugins/workspace/search/index/meaning.js'
import { likenessOf, learnSpace } from '../../../plugins/workspace/search/index/space.js'
import { workspaceWorld } from './support.js'

/** What files are about, in words that are made up, so that nothing but the files says which are alike. */
const SUBJECTS = ['harbour', 'orchard', 'foundry', 'library', 'theatre', 'bakery', 'railway', 'clinic']
const wordOf = (subject: string, at: number): string => `${subject}${'abcdefghijkl'[at % 12]}zo`

const STEPS = [0, 1, 3, 4, 7]

/** Ten files of each subject: each has five of its twelve words. */
const files = (): { [path: string]: string } =>
  Object.fromEntries(
    SUBJECTS.flatMap(subject =>
      Array.from({ length: 10 }, (_, at) => [
        `src/${subject}/${at}.ts`,
        `/** ${STEPS.map(step => wordOf(subject, at + step)).join(' ')} */\nexport const value = ${at}\n`,
      ]),
    ),
  )

/** Asks ten times a second: a credential may make 1,200 calls a minute. */
const until = async (check: () => Promise<boolean>): Promise<void> => {
  for (let asked = 0; !(await check()); asked++) {
    if (asked > 600) throw new Error('it did not come about within a minute')
    await delay(100)
  }
}

const world = async (t: Test) => {
  const made = await workspaceWorld(t, { files: files() })
  const search = (query: string, more: object = {}) =>
    made.daemon.client.call('GET /workspace/search', { query, mode: 'q', ...more })
  /** Resolves once files are compared by what they are about. */
  const learned = () => until(async () => !(await search('harbour of words')).features.includes('semantic'))
  return { ...made, search, learned }
}

void t.test('files are found by what they are about, also without one of the words', async t => {
  const { daemon, search, learned, as } = await world(t)
  await daemon.client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['src/bakery'] })
  const question = `${wordOf('harbour', 1)} ${wordOf('harbour', 2)}`
  const before = await search(question)
  if (before.features.includes('semantic'))
    t.notOk(JSON.stringify(before.groups).includes('"sem"'), 'the tag appears only with what it names')
  await learned()
  const { groups, features } = await search(question)
  t.notOk(features.includes('semantic'))
  const other = groups.find(({ path }) => path === 'src/harbour/4.ts')
  const tags = other?.hits.flatMap(hit => hit.tags.map(({ kind }) => kind))
  t.same(tags, ['sem'], 'a file with other words of the subject')
  const worded = groups.find(({ path }) => path === 'src/harbour/1.ts')
  t.same(
    worded?.hits[0]?.tags.map(({ kind }) => kind),
    ['bm25', 'sem', 'rerank'],
  )
  t.same(
    groups.slice(0, 10).filter(({ path }) => !path.startsWith('src/harbour/')),
    [],
    'the files of the subject come first',
  )
  t.same((await search(question)).groups, groups, 'the same again answers the same')
  t.ok((await search('harbouraz')).features.includes('semantic'), 'a name is searched as a name')
  t.same((await as('ann').call('GET /workspace/search', { query: question, mode: 'q' })).groups, [], 'areas hold')

  await t.test('a changed file is about what it says now', async t => {
    const file = join(daemon.workspace, 'src/harbour/1.ts')
    const words = Array.from({ length: 6 }, (_, at) => wordOf('orchard', at * 2)).join(' ')
    writeFileSync(file, `/** ${words} */\nexport const value = 0\n`)
    const about = async (query: string) => (await search(query)).groups.map(({ path }) => path)
    const orchard = `${wordOf('orchard', 1)} ${wordOf('orchard', 3)}`
    await until(async () => (await about(orchard)).includes('src/harbour/1.ts'))
    t.notOk((await about(question)).includes('src/harbour/1.ts'))
    rmSync(file)
    await until(async () => !(await about(orchard)).includes('src/harbour/1.ts'))
  })

  await t.test('what was learned is kept over an end of the index, and learned again where it is gone', async t => {
    const folder = join(daemon.data, 'workspace/search')
    for (const name of readdirSync(folder)) rmSync(join(folder, name))
    const during = await search(question)
    t.ok(during.features.includes('semantic') || during.freshness.state !== 'building')
    await learned()
    t.ok((await search(question)).groups.length >= 8)
  })
})

void t.test('what lies outside of the areas of a person changes no answer of theirs', async t => {
  const { daemon, search, learned, as } = await world(t)
  await daemon.client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['src/bakery'] })
  const [guessed, own] = [wordOf('harbour', 1), wordOf('bakery', 1)]
  // They write words that they suspect elsewhere, and ask for them.
  writeFileSync(join(daemon.workspace, 'src/bakery/own.ts'), `/** ${guessed} ${own} deletes */\nexport const a = 1\n`)
  const answer = async (query: string) => {
    const { groups, total, features } = await as('ann').call('GET /workspace/search', { query, mode: 'q' })
    return { groups, total, features }
  }
  const queries = [`${guessed} ${own}`, `${guessed} ${wordOf('harbour', 2)}`, `remove ${own}`]
  await learned()
  await until(async () => (await answer(queries[0]!)).groups[0]?.path === 'src/bakery/own.ts')
  const before = await Promise.all(queries.map(answer))
  t.match(JSON.stringify(before), /"bm25"/)
  for (const subject of SUBJECTS.filter(each => each !== 'bakery'))
    rmSync(join(daemon.workspace, 'src', subject), { recursive: true })
  await until(async () => (await search(`${guessed} words`)).groups.every(({ path }) => path.startsWith('src/bakery')))
  t.same(await Promise.all(queries.map(answer)), before)
})

/** An index of the files; each `opened` stands for a start of its thread. */
const indexed = (t: Test) => {
  const path = join(t.testdir({}), 'index.sqlite')
  const store = new IndexStore(path)
  t.teardown(() => store.close())
  const put = (name: string, notes: string) => {
    const chunks = [{ line: 1, lines: 1, head: '', notes, body: '' }]
    store.transaction(() => store.put({ path: name, size: 1, mtimeMs: 1, class: 'source', chunks }))
  }
  for (const [name, text] of Object.entries(files())) put(name, text)
  const opened = (): Meaning => {
    const meaning = new Meaning(store, path)
    store.onPut = (file, name, chunks) => meaning.placed(file, name, chunks)
    store.onDelete = file => meaning.gone(file)
    return meaning
  }
  return { store, put, opened }
}

void t.test('files that change while it learns are placed by what was learned', async t => {
  const { store, put, opened } = indexed(t)
  const meaning = opened()
  const changes = ['src/harbour/1.ts', 'src/harbour/2.ts']
  const change = (path: string) => put(path, STEPS.map(step => wordOf('orchard', step)).join(' '))
  meaning.onMissed = paths => paths.forEach(change)
  meaning.learn()
  while (meaning.nearness([]) === undefined) {
    changes.forEach(change)
    await new Promise(resolve => setImmediate(resolve))
  }
  const directions = new Map(store.directions().map(({ file, vector }) => [file, vector]))
  const directionOf = (path: string) =>
    directions.get(store.get<{ id: number }>('SELECT id FROM files WHERE path = ?', path)!.id)!
  t.equal(directions.size, 80)
  for (const path of changes) {
    const to = (other: string) => likenessOf(directionOf(path), directionOf(other))
    t.ok(to('src/orchard/0.ts') > to('src/harbour/0.ts'), `${path} is about what it says now`)
  }
})

void t.test('it learns again once a third of the files changed, however often the index ended meanwhile', async t => {
  const { store, put, opened } = indexed(t)
  const first = opened()
  first.learn()
  await until(async () => first.nearness([]) !== undefined)
  const third = Array.from({ length: 27 }, (_, at) => `src/${SUBJECTS[at % 8]}/${Math.floor(at / 8)}.ts`)
  const placed = () => store.directions().filter(each => each.placed).length
  for (const [at, path] of third.entries()) {
    t.equal(placed(), at)
    opened().nearness([])
    for (const text of ['once', 'twice']) put(path, text)
  }
  opened().learn()
  await until(async () => store.directions().length === 80 && placed() === 0)
})

void t.test('a file of very many words is placed by the first of them', t => {
  const asked = new Set<string>()
  const store = {
    stem: (word: string) => (asked.add(word), word),
    directions: () => [{ file: 1, vector: new Int8Array(128), placed: false }],
    wordDirection: () => undefined,
    putDirection: () => {},
  } as unknown as IndexStore
  const body = Array.from({ length: 20_000 }, (_, at) => `w${at}`).join(' ')
  new Meaning(store, '').placed(2, 'data', [{ line: 1, lines: 1, head: 'named', notes: '', body }])
  t.equal(asked.size, 5_000)
  t.ok(asked.has('data') && asked.has('named'))
  t.end()
})

void t.test('where there are few files nothing is learned, and the answer says so', async t => {
  const { daemon } = await workspaceWorld(t, { files: { 'src/a.ts': '/** Opens the gate. */\nexport const a = 1\n' } })
  const { client } = daemon
  const search = () => client.call('GET /workspace/search', { query: 'opens the gate', mode: 'q' })
  await until(async () => (await search()).freshness.state === 'fresh')
  const { features, groups } = await search()
  t.same(features, ['semantic'])
  t.same(
    groups[0]?.hits[0]?.tags.map(({ kind }) => kind),
    ['bm25'],
  )
})

void t.test('a word is found by another one for the same thing', async t => {
  const like = likeWords(word => word)
  const oneSided = [...like].filter(([one, others]) => [...others].some(other => !like.get(other)?.has(one)))
  t.same(oneSided, [])
  t.same(
    [...like].filter(([, others]) => others.size === 0),
    [],
  )
  const { daemon } = await workspaceWorld(t, {
    files: { 'src/a.ts': '/** Deletes the folder. */\nexport const a = 1\n', 'src/b.ts': 'export const b = 2\n' },
  })
  const search = () => daemon.client.call('GET /workspace/search', { query: 'remove a directory', mode: 'q' })
  await until(async () => (await search()).freshness.state === 'fresh')
  t.same(
    (await search()).groups.map(({ path }) => path),
    ['src/a.ts'],
  )
})

void t.test('directions are the same each time, and alike for words that stand in the same files', t => {
  const words = ['sail', 'mast', 'oven', 'flour'].map((word, at) => {
    const places = at < 2 ? [0, 1, 2] : [3, 4, 5]
    return { word, rarity: 1, files: places, weights: places.map(() => 1) }
  })
  const space = learnSpace(words, 6)
  t.same(learnSpace(words, 6), space)
  t.ok(likenessOf(space.files[0]!, space.files[1]!) > 0.9)
  t.ok(likenessOf(space.files[0]!, space.files[4]!) < 0.1)
  t.same(
    learnSpace([], 2).files.map(file => file.every(each => each === 0)),
    [true, true],
  )
  t.end()
})
