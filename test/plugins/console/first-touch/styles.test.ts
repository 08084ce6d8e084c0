import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import t from 'tap'
import { project } from '../../../support/browser/page.js'

const WEB = join(project, 'plugins/console/web')
const read = (file: string): string => readFileSync(join(WEB, file), 'utf8')
const SHEETS = globSync('style/*.css', { cwd: WEB }).filter(file => file !== 'style/main.css')

interface Rule {
  readonly selectors: readonly string[]
  readonly body: string
}

/** The rules of a style sheet, also those within conditions. */
const rulesOf = (css: string): Rule[] =>
  [...css.replace(/\/\*[^]*?\*\//g, '').matchAll(/([^{};]+)\{([^{}]*)\}/g)]
    .map(([, selectors = '', body = '']) => ({ selectors: selectors.trim().split(/\s*,\s*/), body }))
    .filter(({ selectors: [first] }) => !/^(?:from|to|\d+%)$/.test(first!))

/** The class that a selector begins with. */
const firstClass = (selector: string): string | undefined => /^[^\s>]*?\.([\w-]+)/.exec(selector)?.[1]

/** The end of what begins with a bracket, a quote or a backtick. */
const endOf = (text: string, at: number): number => {
  const open = text[at]!
  if (open !== '{') return text.indexOf(open, at + 1) + 1
  let depth = 0
  for (let end = at; end < text.length; end++) {
    if (text[end] === '{') depth += 1
    else if (text[end] === '}' && --depth === 0) return end + 1
  }
  return text.length
}

/** The classes that a file gives to elements. */
const classesIn = (text: string): Set<string> =>
  new Set(
    [...text.matchAll(/\bclass(?::\s*\w+)?\s*=\s*(?=["'{`])/g)].flatMap(({ 0: found, index }) => {
      const from = index + found.length
      const value = text.slice(from, endOf(text, from))
      const strings = [...value.matchAll(/'([^'\n]*)'|"([^"\n]*)"|`([^`]*)`/g)].map(([, a, b, c]) => a ?? b ?? c ?? '')
      return strings.flatMap(one => one.replace(/\$\{[^}]*\}/g, ' ').match(/[\w-]+/g) ?? [])
    }),
  )

const USES = globSync('**/*.tsx', { cwd: WEB }).map(file => ({ file, classes: classesIn(read(file)) }))

/** Whether a file may use the classes of a sheet that is named for a page. */
const OWNERS = (page: string) => (file: string) =>
  page === 'sign-in' ? /^(?:main|ui\/shell\/sign-in)\.tsx$/.test(file) : file.startsWith(`pages/${page}/`)

for (const sheet of SHEETS) {
  const page = basename(sheet, '.css')
  if (page !== 'sign-in' && !existsSync(join(WEB, 'pages', page))) continue
  t.test(`the classes of ${sheet} are used by its page alone`, t => {
    const isOwn = OWNERS(page)
    const own = new Set<string>()
    for (const selector of rulesOf(read(sheet)).flatMap(({ selectors }) => selectors)) {
      const name = firstClass(selector)
      t.ok(name, `${selector} names a class of its page`)
      if (name) own.add(name)
    }
    for (const { file, classes } of USES)
      if (!isOwn(file))
        t.same(
          [...classes].filter(name => own.has(name)),
          [],
          file,
        )
    for (const name of own)
      t.ok(
        // Levels are counted.
        USES.some(({ file }) => isOwn(file) && read(file).includes(name.replace(/\d+$/, ''))),
        `.${name} is used`,
      )
    t.end()
  })
}

t.test('a class is defined in one sheet', t => {
  const sheets = Map.groupBy(
    SHEETS.flatMap(sheet =>
      rulesOf(read(sheet)).flatMap(({ selectors }) =>
        selectors.filter(one => /^\.[\w-]+$/.test(one)).map(selector => ({ sheet, selector })),
      ),
    ),
    ({ selector }) => selector,
  )
  t.ok(sheets.size > 100)
  for (const [selector, found] of sheets) t.equal(new Set(found.map(({ sheet }) => sheet)).size, 1, selector)
  t.end()
})

t.test('what scrolls is the place of what is within it', t => {
  // What is only read aloud would be placed against the document otherwise, and make that higher than the window.
  const scrolling = SHEETS.flatMap(sheet => rulesOf(read(sheet))).filter(({ body }) =>
    /overflow(?:-[xy])?:\s*(?:auto|scroll)/.test(body),
  )
  t.ok(scrolling.length > 10)
  // A dialog has a place of its own in every browser.
  for (const { selectors, body } of scrolling)
    if (selectors.join() !== 'dialog') t.match(body, /position:/, selectors.join())
  t.end()
})
