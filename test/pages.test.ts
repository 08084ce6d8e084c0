import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join, posix } from 'node:path'
import t from 'tap'
import { project } from './support/browser/page.js'
import { allPages, groupGuides, type Guide } from './support/guides.js'
import { exactly } from './support/lists.js'

const MOST_BYTES = 12 * 1024
const pages = allPages()

/** A page without what it shows as code. */
const prose = (text: string): string => text.replace(/^```[^]*?^```/gm, '').replace(/`[^`\n]*`/g, '')

/** The addresses of the headings of a page, as servers of repositories make them. */
const anchorsOf = (text: string): Set<string> =>
  new Set(
    [...text.replace(/^```[^]*?^```/gm, '').matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )

/** The links of a page that lead nowhere. */
const deadLinks = ({ path, text }: Guide): string[] =>
  [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = '']) => {
    if (/^https?:/.test(target)) return []
    const [file = '', anchor] = target.split('#')
    const at = file === '' ? path : posix.join(dirname(path), file)
    const there = join(project, at)
    if (at.startsWith('..') || !existsSync(there)) return [`${path}: ${target}`]
    if (anchor === undefined) return []
    const found = statSync(there).isFile() && anchorsOf(readFileSync(there, 'utf8')).has(anchor)
    return found ? [] : [`${path}: ${target}`]
  })

t.test('README.md and CONTRIBUTING.md are short', t => {
  for (const path of ['README.md', 'CONTRIBUTING.md'])
    t.ok(statSync(join(project, path)).size <= MOST_BYTES, `${path} has at most ${MOST_BYTES} bytes`)
  t.end()
})

t.test('every link of every page leads somewhere', t => {
  t.ok(pages.length > 45, `${pages.length} pages`)
  t.match(pages.flatMap(deadLinks), exactly())
  const broken = { path: 'sdk/A.md', text: '[a](README.md) [b](none.md) [c](#none) [d](../README.md#none) `[e](none)`' }
  t.match(deadLinks(broken), exactly('sdk/A.md: none.md', 'sdk/A.md: #none', 'sdk/A.md: ../README.md#none'))
  t.end()
})

/** The calls that a page names in its text and that the published document lacks. */
const unknownCalls = ({ path, text }: Guide, known: ReadonlySet<string>): string[] =>
  [...text.replace(/^```[^]*?^```/gm, '').matchAll(/`((?:GET|POST|PUT|PATCH|DELETE) \/[^`\s]*)`/g)].flatMap(
    ([, call = '']) => {
      const [plain = ''] = call.split('?')
      return known.has(plain) || plain.includes('*') || /^\w+ \/(?:hello|notes)\b/.test(plain)
        ? []
        : [`${path}: ${call}`]
    },
  )

t.test('every call that a guide names is in the published document', t => {
  const { paths } = JSON.parse(readFileSync(join(project, 'openapi/openapi.json'), 'utf8')) as {
    paths: { [path: string]: { [method: string]: unknown } }
  }
  const known = new Set(
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map(method => `${method.toUpperCase()} ${path}`),
    ),
  )
  const named = pages.filter(({ path }) =>
    /^(?:README|(?:kernel|sdk|plugins\/[\w-]+)\/(?:README|WALL|PERMISSIONS))\.md$/.test(path),
  )
  t.ok(named.length > 40)
  t.match(
    named.flatMap(page => unknownCalls(page, known)),
    exactly(),
  )
  t.match(
    unknownCalls({ path: 'A.md', text: 'use `GET /agents` and `GET /nowhere`' }, known),
    exactly('A.md: GET /nowhere'),
  )
  t.end()
})

t.test('every group has a guide, which begins with its title and which README.md leads to', t => {
  const groups = globSync('manifests/*.json', { cwd: project }).map(file => basename(file, '.json'))
  const expected = groups.filter(name => name !== 'schema').map(name => `plugins/${name}/README.md`)
  t.match(
    groupGuides.map(({ path }) => path),
    exactly(...expected.sort()),
  )
  const readme = pages.find(({ path }) => path === 'README.md')!.text
  for (const { path, text } of groupGuides) {
    t.match(text, /^# \S.*\n\n\S/, `${path} begins with its title`)
    t.notMatch(prose(text), /<\/?[a-z]+[ >]/i, `${path} has no HTML`)
    t.ok(readme.includes(`(${path})`), `README.md leads to ${path}`)
  }
  t.end()
})
