import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { until } from '../../support/browser/browser.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { beginning, exactly } from '../../support/lists.js'
import { inGit } from '../../support/daemon.js'
import { runningCommands } from '../../support/running-commands.js'
import { commitAll } from '../git/support.js'
import { workspaceWorld } from './support.js'

const SHOP = `import { priceOf } from './price.js'
/** Opens the shop. */
export const openShop = (items: string[]): number => {
  let total = 0
  for (const item of items) if (item) total += priceOf(item)
  return total
}
export class ShopWindow {
  draw(): string {
    return String(openShop([]))
  }
}
`
const PRICE = `export interface PriceList { [name: string]: number }
// openShop is only named here
export const priceOf = (name: string): number => name.length
`
const FILES = {
  '.gitignore': 'built/\n',
  'src/shop.ts': SHOP,
  'src/price.ts': PRICE,
  'test/shop.test.ts': `import { openShop } from '../src/shop.js'\nopenShop(['a'])\n`,
  'docs/guide.md': '# Opening hours\n\nThe shop opens at nine and calculates the total of all prices.\n',
  'lib/tool.py': 'from lib.other import helper\n\ndef open_tool(path):\n    return helper(path)\n',
  'lib/other.py': 'def helper(x):\n    return x\n',
  'odd/notes.txt': 'a (bracket and a needle\n',
}

void t.test('search', async t => {
  const { daemon, as, ask } = await workspaceWorld(t, { files: FILES })
  const { client, workspace } = daemon
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  mkdirSync(join(workspace, 'built'))
  writeFileSync(join(workspace, 'built/out.js'), 'const needleBuilt = 1\n')
  const search = (input: { query: string; [field: string]: unknown }) =>
    client.call('GET /workspace/search', input as never)
  const paths = async (input: { query: string; [field: string]: unknown }) =>
    (await search(input)).groups.map(({ path }) => path)

  await t.test('it needs a credential and a valid query', async t => {
    t.equal((await fetch(`${daemon.url}/workspace/search?query=x`)).status, 401)
    t.equal((await daemon.fetch('/workspace/search')).status, 400)
    t.equal((await daemon.fetch('/workspace/search?query=x&mode=none')).status, 400)
    t.equal((await daemon.fetch(`/workspace/search?query=${'x'.repeat(513)}`)).status, 400)
    t.equal((await daemon.fetch('/workspace/search?query=x&after=abc')).status, 400)
    t.equal((await daemon.fetch('/workspace/search?query=x&dir=../x')).status, 400)
    t.equal((await daemon.fetch('/workspace/search?query=x&dir=gone')).status, 404)
    t.equal((await daemon.fetch('/workspace/search?query=x&dir=.git')).status, 404)
    t.equal((await daemon.fetch('/workspace/search?query=x&dir=src/shop.ts')).status, 422)
    const many = encodeURIComponent('{a,b}'.repeat(7))
    t.equal((await daemon.fetch(`/workspace/search?query=x&include=${many}`)).status, 400)
    const editor = await daemon.token('editor')
    t.equal((await editor.client.call('GET /workspace/search', { query: 'openShop', mode: 'find' })).files, 3)
    t.equal((await fetch(`${daemon.url}/workspace/health?repo=root`)).status, 401)
    t.match(await refusalOf(() => editor.client.call('GET /workspace/health', { repo: 'root' })), { status: 403 })
  })

  await t.test('text is found as ripgrep finds it, whole words and definitions first', async t => {
    const { groups, freshness, total } = await search({ query: 'openShop', mode: 'find' })
    const byHand = execFileSync('git', ['grep', '-n', 'openShop'], { cwd: workspace, encoding: 'utf8' })
    t.equal(total, byHand.trim().split('\n').length)
    t.same(freshness, { state: 'fresh', ageMs: 0 })
    t.match(groups[0], {
      path: 'src/shop.ts',
      capped: false,
      hits: exactly(
        { line: 3, text: /^export const openShop/, spans: exactly({ start: 13, end: 21 }) },
        { line: 10, spans: exactly({ start: 18, end: 26 }) },
      ),
    })
    t.same(await paths({ query: 'PRICEOF', mode: 'find', caseSensitive: true }), [])
    t.same(await paths({ query: 'price\\w+\\(', mode: 'find' }), ['src/shop.ts'])
    t.same(await paths({ query: 'pric', mode: 'find', word: true }), [])
    t.same(await paths({ query: 'needleBuilt', mode: 'find' }), [])
    t.same(await paths({ query: 'needleBuilt', mode: 'find', includeIgnored: true }), ['built/out.js'])
    t.match(await search({ query: '(bracket', mode: 'find' }), {
      note: /no regular expression/,
      groups: exactly({ path: 'odd/notes.txt' }),
    })
  })

  await t.test('folder and patterns say where', async t => {
    t.same(await paths({ query: 'openShop', mode: 'find', dir: 'src', include: '!price.ts' }), ['src/shop.ts'])
    t.same(await paths({ query: 'openShop', mode: 'find', include: './test' }), ['test/shop.test.ts'])
    t.same(await paths({ query: 'helper', mode: 'find', include: '.{py,ts}' }), ['lib/other.py', 'lib/tool.py'])
    t.same(await paths({ query: 'openShop', mode: 'def', include: 'docs' }), [])
  })

  await t.test('files are found by a part of their names or a pattern', async t => {
    t.same((await paths({ query: 'shop', mode: 'files' })).slice(0, 2), ['src/shop.ts', 'test/shop.test.ts'])
    t.same(await paths({ query: '*.py', mode: 'files' }), ['lib/tool.py', 'lib/other.py'])
    t.match((await search({ query: 'sshp', mode: 'files' })).groups[0], {
      hits: exactly({ tags: exactly({ kind: 'fuzzy' }) }),
    })
  })

  await t.test('symbols are found where they are defined and used', async t => {
    let defined = await search({ query: 'openShop', mode: 'def' })
    while (defined.freshness.state === 'building') defined = await search({ query: 'openShop', mode: 'def' })
    t.match(defined, {
      freshness: { state: 'fresh' },
      groups: beginning({ path: 'src/shop.ts', hits: exactly({ line: 3, tags: exactly({ kind: 'def' }) }) }),
    })
    const uses = await search({ query: 'openShop', mode: 'refs' })
    t.same(
      uses.groups.map(({ path, hits }) => [path, hits.map(({ line, tags }) => `${line} ${tags[0]!.kind}`)]),
      [
        ['test/shop.test.ts', ['1 import', '2 call']],
        ['src/shop.ts', ['10 call']],
      ],
      'a comment is no use',
    )
    t.same(await paths({ query: 'class: Shop', mode: 'sym' }), ['src/shop.ts'])
    t.same(await paths({ query: 'PriceList', mode: 'sym' }), ['src/price.ts'])
    t.same(await paths({ query: 'open_tool', mode: 'def' }), ['lib/tool.py'])
    t.equal((await paths({ query: 'opnShop', mode: 'def' }))[0], 'src/shop.ts', 'a name that is alike')
    t.match((await search({ query: 'draw', mode: 'def' })).groups[0], { hits: exactly({ context: 'ShopWindow' }) })
  })

  await t.test('code is found by its shape', async t => {
    t.same(await paths({ query: 'openShop($$$)', mode: 'ast' }), ['src/shop.ts', 'test/shop.test.ts'])
    t.match(
      (await search({ query: 'const $A = ($B: string): number => $C', mode: 'ast', dir: 'src' })).groups,
      exactly({ path: 'src/price.ts', hits: exactly({ line: 3 }) }),
    )
    t.match(await refusalOf(() => search({ query: '}{ (', mode: 'ast' })), { status: 422 })
  })

  await t.test('a question is answered by what it looks like', async t => {
    t.match(await search({ query: 'openShop' }), { mode: 'q', features: exactly('semantic') })
    t.equal((await paths({ query: 'openShop' }))[0], 'src/shop.ts')
    t.equal((await paths({ query: 'src/price.ts' }))[0], 'src/price.ts')
    t.equal((await paths({ query: 'how is the total of the items summed up?' }))[0], 'src/shop.ts')
    t.ok((await paths({ query: 'opening hours' })).includes('docs/guide.md'))
    t.equal((await paths({ query: 'open\\w+\\(path' }))[0], 'lib/tool.py')
    t.same(await search({ query: 'xyzzy plugh' }).then(({ total, hint }) => [total, typeof hint]), [0, 'string'])
  })

  await t.test('a file that contains all words ranks above files that define one of them', async t => {
    const folder = join(workspace, 'words')
    mkdirSync(folder)
    for (const name of ['system', 'folders', 'watches', 'poll', 'gives'])
      writeFileSync(join(folder, `${name}-only.ts`), `export const ${name} = (value: number): number => value + 1\n`)
    writeFileSync(
      join(folder, 'interval.ts'),
      '/** Polls the folders again and again where the system gives no more watches. */\nexport const again = 1\n',
    )
    const [first] = await paths({ query: 'poll folders when the system gives no more watches', dir: 'words' })
    t.equal(first, 'words/interval.ts')
    const named = await paths({ query: 'open the shop', dir: '.' })
    t.equal(named[0], 'src/shop.ts', 'a symbol with the name of all words')
    rmSync(folder, { recursive: true })
  })

  await t.test('a long file ranks no higher for having more words, and changed files count as they are', async t => {
    const folder = join(workspace, 'lengths')
    mkdirSync(folder)
    const said = ['parcels', 'weighed', 'counter']
    const long = Array.from({ length: 400 }, (_, at) => `// ${at % 45 === 0 ? said[(at / 45) % 3] : `other${at}`}`)
    writeFileSync(join(folder, 'long.ts'), long.join('\n'))
    writeFileSync(join(folder, 'scale.ts'), '// parcels are weighed at the counter\n')
    const query = 'weigh a parcel at the counter'
    t.same(await paths({ query, dir: 'lengths' }), ['lengths/scale.ts', 'lengths/long.ts'])
    writeFileSync(join(folder, 'scale.ts'), '// nothing\n')
    let left = await paths({ query, dir: 'lengths' })
    while (left.length > 1) left = await paths({ query, dir: 'lengths' })
    t.same(left, ['lengths/long.ts'])
    rmSync(folder, { recursive: true })
  })

  await t.test('the index follows the disk', async t => {
    writeFileSync(join(workspace, 'src/shop.ts'), `\n\n${SHOP}`)
    const { groups, freshness } = await search({ query: 'openShop', mode: 'def' })
    t.match(groups[0], { path: 'src/shop.ts', hits: exactly({ line: 5 }) })
    t.equal(freshness.state, 'fresh')
    writeFileSync(join(workspace, 'src/new.ts'), 'export const brandNew = 1\n')
    t.same(await paths({ query: 'brandNew', mode: 'def' }), ['src/new.ts'])
    rmSync(join(workspace, 'src/new.ts'))
    t.same(await paths({ query: 'brandNew', mode: 'sym' }), [])
  })

  await t.test('in a clone of real code a definition is found on its line, before and after an edit', async t => {
    const [origin, clone] = [join(daemon.data, '../origin'), join(workspace, 'clone')]
    cpSync('sdk/node/files', join(origin, 'files'), { recursive: true })
    cpSync('plugins/workspace', join(origin, 'workspace'), { recursive: true })
    execFileSync('git', ['init', '-q'], { cwd: origin })
    commitAll(origin, 'real code')
    execFileSync('git', ['clone', '-q', origin, clone])
    const file = join(clone, 'files/open-path.ts')
    const lineOf = (name: string) =>
      readFileSync(file, 'utf8')
        .split('\n')
        .findIndex(text => text.startsWith(`export const ${name} =`)) + 1
    const defined = async (query: string) => {
      for (;;) {
        const found = await search({ query, mode: 'def', dir: 'clone' })
        if (found.freshness.state === 'fresh') return found.groups
      }
    }
    const first = (line: number) => beginning({ path: 'clone/files/open-path.ts', hits: beginning({ line }) })
    t.match(await defined('openExisting'), first(lineOf('openExisting')))
    writeFileSync(file, `// one\n// two\n${readFileSync(file, 'utf8').replaceAll('openParent', 'openAbove')}`)
    t.match(await defined('openExisting'), first(lineOf('openExisting')))
    t.match(await defined('openAbove'), first(lineOf('openAbove')))
    t.ok(lineOf('openAbove') > 0 && lineOf('openParent') === 0)
    rmSync(clone, { recursive: true })
  })

  await t.test('an index that is gone is built again', async t => {
    const before = await paths({ query: 'openShop', mode: 'refs' })
    for (const name of readdirSync(join(daemon.data, 'workspace/search')))
      rmSync(join(daemon.data, 'workspace/search', name))
    const during = await search({ query: 'openShop', mode: 'refs' })
    t.match(during.freshness.state, /^(?:building|fresh)$/)
    for (let now = during; now.freshness.state !== 'fresh';) now = await search({ query: 'openShop', mode: 'refs' })
    t.same(await paths({ query: 'openShop', mode: 'refs' }), before)
  })

  await t.test('pages have whole files, and a cursor is of one query', async t => {
    const first = await search({ query: 'openShop', mode: 'find', limit: 1 })
    t.match(first, { files: 3, truncated: true, groups: { length: 1 }, candidates: { length: 2 } })
    const second = await search({ query: 'openShop', mode: 'find', limit: 2, after: first.cursor })
    t.match(second, { truncated: false, groups: { length: 2 } })
    t.notOk(second.groups.some(({ path }) => path === first.groups[0]!.path))
    const other = encodeURIComponent(first.cursor!)
    t.equal((await daemon.fetch(`/workspace/search?query=other&mode=find&after=${other}`)).status, 400)
  })

  await t.test('a limited member sees their areas alone, and a link leads nowhere', async t => {
    mkdirSync(join(daemon.data, '../outside'))
    writeFileSync(join(daemon.data, '../outside/secret.ts'), 'export const zirkonia = "openShop"\n')
    symlinkSync(join(daemon.data, '../outside'), join(workspace, 'out'))
    symlinkSync(join(daemon.data, '../outside/secret.ts'), join(workspace, 'docs/link.ts'))
    for (const mode of ['q', 'find', 'files', 'def', 'refs', 'sym', 'ast'] as const) {
      t.same((await search({ query: 'zirkonia', mode, includeIgnored: true })).total, 0, mode)
      t.same((await as('ann').call('GET /workspace/search', { query: 'openShop', mode })).total, 0, `ann ${mode}`)
    }
    t.same(
      (await as('ann').call('GET /workspace/search', { query: 'opens', mode: 'find' })).groups.map(({ path }) => path),
      ['docs/guide.md'],
    )
    t.equal((await ask('ann', '/workspace/search?query=x&dir=src')).status, 404)
    t.equal((await ask('ann', '/workspace/health?repo=root')).status, 404)
    t.same(await paths({ query: 'worktree', mode: 'find', includeIgnored: true }), [], 'nothing of git')
  })

  await t.test('a file has at most 50 lines on a page', async t => {
    writeFileSync(join(workspace, 'docs/long.txt'), 'hammer\n'.repeat(80))
    t.match(await search({ query: 'hammer', mode: 'find' }), {
      total: 80,
      partial: true,
      groups: exactly({ capped: true, hits: { length: 50 } }),
    })
  })

  await t.test('a page has at most 300 files and 1,000 lines, also where more are asked for', async t => {
    const folder = join(workspace, 'paged')
    mkdirSync(folder)
    for (let at = 0; at < 30; at++) writeFileSync(join(folder, `long-${at}`), 'chisel\n'.repeat(50))
    for (let at = 0; at < 310; at++) writeFileSync(join(folder, `short-${at}`), 'gimlet\n')
    const seen = new Set<string>()
    const pages = async (query: string) => {
      const counts: { files: number; lines: number }[] = []
      let after: string | undefined
      do {
        const { groups, cursor } = await search({ query, mode: 'find', limit: 5000, ...(after && { after }) })
        for (const { path } of groups) seen.add(path)
        counts.push({ files: groups.length, lines: groups.reduce((sum, { hits }) => sum + hits.length, 0) })
        after = cursor
      } while (after !== undefined)
      return counts
    }
    t.same(await pages('chisel'), [
      { files: 20, lines: 1000 },
      { files: 10, lines: 500 },
    ])
    t.same(await pages('gimlet'), [
      { files: 300, lines: 300 },
      { files: 10, lines: 10 },
    ])
    t.equal(seen.size, 340, 'the pages leave out no file')
    rmSync(folder, { recursive: true })
  })

  await t.test('binary files are left out, and lines that are not UTF-8 are shown', async t => {
    writeFileSync(join(workspace, 'docs/blob'), Buffer.from('a\0 anvil\n'))
    writeFileSync(join(workspace, 'docs/latin.txt'), Buffer.from('caf\xe9 anvil\n', 'latin1'))
    t.match(await search({ query: 'anvil', mode: 'find' }), {
      groups: exactly({ path: 'docs/latin.txt', hits: exactly({ text: 'caf\ufffd anvil', spans: exactly() }) }),
    })
  })

  await t.test('a search whose client goes away leaves no program', async t => {
    const folder = join(workspace, 'built/large')
    mkdirSync(folder, { recursive: true })
    for (let each = 0; each < 30; each++) writeFileSync(join(folder, `${each}.txt`), 'ab'.repeat(2_000_000))
    const gone = new AbortController()
    const path = '/workspace/search?mode=find&includeIgnored=true&query=(a%7Cb)%7B1%2C200%7Dx'
    const asked = daemon.fetch(path, { signal: gone.signal }).catch(() => undefined)
    const running = () => runningCommands().some(line => line.includes('{1,200}x'))
    await until(running)
    const left = performance.now()
    gone.abort()
    await asked
    await until(() => !running())
    t.ok(performance.now() - left < 1000, 'none after 1 s')
  })

  await t.test('more than eight searches of a caller are refused', async t => {
    const path = '/workspace/search?mode=find&includeIgnored=true&query=(a%7Cb)%7B1%2C60%7Dx'
    const answers = await Promise.all(Array.from({ length: 10 }, () => daemon.fetch(path)))
    t.ok(answers.some(({ status }) => status === 429))
    t.ok(answers.some(({ status }) => status === 200))
    rmSync(join(workspace, 'built/large'), { recursive: true })
  })

  await t.test('health ranks what changes often and what is imported', async t => {
    const health = await client.call('GET /workspace/health', { repo: 'root', since: '1d' })
    t.match(health, {
      repo: 'root',
      hotspots: beginning({ path: 'src/shop.ts', commits: 1, complexity: 2, score: 2 }),
      modules: { length: 3 },
      freshness: { state: /fresh|stale/ },
    })
    t.same(health.modules.map(({ path }) => path).sort(), ['lib/other.py', 'src/price.ts', 'src/shop.ts'])
    t.equal((await daemon.fetch('/workspace/health?repo=none')).status, 404)
    t.equal((await daemon.fetch('/workspace/health?repo=root&since=soon')).status, 400)
    t.match(await client.call('GET /workspace/health', { repo: 'root', since: '2000-01-01', limit: 1 }), {
      hotspots: { length: 1 },
      totals: { files: Number },
    })
  })

  await t.test('a file whose name git quotes counts under its name', async t => {
    const path = 'src/a "back\\slash".ts'
    writeFileSync(join(workspace, path), 'export const choose = (a: number) => (a > 1 ? 1 : 2)\n')
    inGit(workspace, 'add', path)
    inGit(workspace, 'commit', '-qm', 'odd')
    const ranked = async () =>
      (await client.call('GET /workspace/health', { repo: 'root', since: '1d' })).hotspots.find(
        each => each.path === path,
      )
    while (!(await ranked())?.commits) await delay(50)
    t.match(await ranked(), { commits: 1 })
  })
})
