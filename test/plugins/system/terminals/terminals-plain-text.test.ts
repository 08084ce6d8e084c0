import t from 'tap'
import { PlainText } from '../../../../plugins/system/terminals/plain-text.js'

/** The lines reported for these pieces, and at the end. */
const shown = async (
  pieces: readonly (string | { cols: number; rows: number })[],
  cols = 20,
  rows = 5,
): Promise<{ told: string[]; rest: string[] }> => {
  const told: string[] = []
  const text = await PlainText.open({ cols, rows }, { lines: lines => told.push(...lines) })
  for (const piece of pieces) {
    if (typeof piece === 'string') await text.write(piece)
    else text.resize(piece)
  }
  const before = told.length
  text.end()
  return { told: told.slice(0, before), rest: told.slice(before) }
}
const numbers = (count: number) => Array.from({ length: count }, (_, n) => `line ${n}`)

t.test('lines are reported when they are complete, without colours, and the last one at the end', async t => {
  t.same(await shown(['\x1b[31mred\x1b[0m\r\n', 'half', ' of it\r\n\x1b]0;title\x07pro', 'mpt> ']), {
    told: ['red', 'half of it'],
    rest: ['prompt> '],
  })
  t.same(await shown(['one\r\ntwo\r\n']), { told: ['one', 'two'], rest: [] })
  t.same((await shown(['a\tb\b\bcd\r\n日本\r\n'])).told, ['a      cd', '日本'])
})

t.test('an overwritten line is reported in its final form', async t => {
  t.same((await shown(['10%\r50%\r100%\r\nls -xx\b\b\x1b[Kla\r\n'])).told, ['100%', 'ls -la'])
  t.same(
    (await shown([`${'#'.repeat(20)}\r${'='.repeat(20)}\r\nnext\r\n`])).told,
    ['='.repeat(20), 'next'],
    'also one as wide as the screen',
  )
})

t.test('a line over many rows is one line, also as shells write it and when the window changes', async t => {
  const typed = 'echo 0123456789 abcdefghijklmnopqrstuvwxyz'
  t.same((await shown([`${typed.slice(0, 20)} \r${typed.slice(20, 40)} \r${typed.slice(40)}\r\n`])).told, [typed])
  t.same((await shown(['x'.repeat(90), '\r\nafter\r\n'])).told, ['x'.repeat(90), 'after'])
  t.same((await shown([`${'y'.repeat(30)}`, { cols: 50, rows: 5 }, `${'z'.repeat(30)}\r\nafter\r\n`])).told, [
    `${'y'.repeat(30)}${'z'.repeat(30)}`,
    'after',
  ])
})

t.test('many more lines than the screen has are each reported once, in any pieces', async t => {
  const text = numbers(5_000)
    .map(line => `${line}\r\n`)
    .join('')
  t.same((await shown([text])).told, numbers(5_000))
  t.same((await shown(text.match(/[^]{1,77}/g)!)).told, numbers(5_000))
  t.same(
    (await shown(['\r\n'.repeat(5_000)])).told,
    Array.from({ length: 5_000 }, () => ''),
  )
  t.same(
    (
      await shown(
        [
          numbers(3_000)
            .map(line => `${line}\r\n`)
            .join(''),
        ],
        2,
        1,
      )
    ).told,
    numbers(3_000),
  )
})

t.test('a redrawn line above is not reported again', async t => {
  const frame = (n: number) => `pull a ${n}%\x1b[K\r\npull b ${n}%\x1b[K\r\n`
  t.same((await shown([frame(0), ...[10, 20, 100].map(n => `\x1b[2A${frame(n)}`), 'done\r\n'])).told, [
    'pull a 0%',
    'pull b 0%',
    'done',
  ])
})

t.test('the output of a full-screen program is not reported, and lines continue after it', async t => {
  t.same(
    (
      await shown([
        'before\r\n$ vim\r\n\x1b[?1049h\x1b[2J\x1b[Hsecret\r\ntext\r\n',
        'more\r\n\x1b[?1049l',
        '$ exit\r\n',
      ])
    ).told,
    ['before', '$ vim', '$ exit'],
  )
  t.same(await shown(['a\r\n\x1b[?1049h', 'hidden']), { told: ['a'], rest: [] })
})

t.test('lines are reported before and after the screen is cleared', async t => {
  for (const clear of [
    '\x1b[H\x1b[2J',
    '\x1b[2J\x1b[H',
    '\x1b[H\x1b[J',
    '\x1b[H\x1b[2J\x1b[3J',
    '\x1bc',
    '\x1b[A\x1b[A\r\x1b[J',
  ]) {
    const { told } = await shown([`a\r\nb\r\nprompt${clear}c\r\nd\r\n`, `${clear}e\r\n`])
    t.same(told.filter(Boolean), ['a', 'b', 'c', 'd', 'e'], JSON.stringify(clear))
  }
})

t.test('of an endless line the beginning and the following lines are reported', async t => {
  const { told } = await shown([...Array.from({ length: 100 }, () => 'x'.repeat(1_000)), '\r\nafter\r\nlast\r\n'])
  t.same(told.map(line => line.length).slice(1), [5, 4])
  t.match(told[0], /^x{5000,8000}$/)
  t.same(told.slice(1), ['after', 'last'])
})

t.test('an unfinished control sequence ends at a reset', async t => {
  const told: string[] = []
  const text = await PlainText.open({ cols: 20, rows: 5 }, { lines: lines => told.push(...lines) })
  await text.write('a\r\nhalf\x1bPq swallowed\r\n')
  await text.reset(false)
  await text.write('b\r\n')
  await text.reset(true)
  await text.write('full\r\n\x1b[?1049lc\r\n')
  t.same(told, ['a', 'b', 'c'])
})
