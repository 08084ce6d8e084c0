import t from 'tap'
import { DEMO, HELP } from '../../../../plugins/agent/providers/script/help.js'
import { parse } from '../../../../plugins/agent/providers/script/parse.js'
import { verbs } from '../../../../plugins/agent/providers/script/verbs.js'
import { inTime } from '../../../support/in-time.js'
import { exactly } from '../../../support/lists.js'

const script = (words: string) => {
  const parsed = parse(words)
  if (parsed.kind !== 'script') throw new Error(`${words}: ${JSON.stringify(parsed)}`)
  return parsed.commands
}
const action = (words: string) => {
  const { name, input } = script(words)[0]!
  return { verb: name, ...input }
}

t.test('the first line that is neither blank nor a comment decides whether a prompt is a script', async t => {
  const kinds: [string, string][] = [
    ['say hi', 'script'],
    ['\n# a comment\n\nsay hi', 'script'],
    ['stop', 'script'],
    ['\r\nsay hi\r\n', 'script'],
    ['', 'plain'],
    ['\n\n', 'plain'],
    ['# only a comment', 'plain'],
    ['Say hi', 'plain'],
    ['SAY hi', 'plain'],
    ['  say hi', 'plain'],
    ['saying hi', 'plain'],
    ['say: hi', 'plain'],
    ['constructor x', 'plain'],
    ['toString', 'plain'],
    ['__proto__ x', 'plain'],
    ['| say hi', 'plain'],
    ['---\nsay hi', 'plain'],
    ['## Title\nsay hi', 'plain'],
    ['Fix the bug\nsay hi', 'plain'],
    ['/etc/passwd', 'plain'],
    ['/ help', 'plain'],
    ['/', 'plain'],
    ['/help', 'slash'],
    ['/demo now', 'slash'],
    ['# x\n/nope', 'slash'],
  ]
  for (const [words, kind] of kinds) t.equal(parse(words).kind, kind, JSON.stringify(words))
})

t.test('every command is parsed', async t => {
  const table: [string, object][] = [
    ['say  hello  you ', { verb: 'say', text: 'hello  you' }],
    ['say\n| one\n|two\n|  three', { verb: 'say', text: 'one\ntwo\n three' }],
    ['say one\n\n# between\n| two', { verb: 'say', text: 'one\ntwo' }],
    ['think hm', { verb: 'think', text: 'hm' }],
    [
      'todo [ ] a | [~] b c | [x] d',
      {
        verb: 'todo',
        items: [
          { content: 'a', status: 'pending' },
          { content: 'b c', status: 'in_progress' },
          { content: 'd', status: 'completed' },
        ],
      },
    ],
    ['read a b.txt', { verb: 'read', path: 'a b.txt' }],
    ['read a.txt 3-7', { verb: 'read', path: 'a.txt', from: 3, to: 7 }],
    ['list', { verb: 'list', path: '.' }],
    ['write a.txt\n| x\n|\n| y', { verb: 'write', path: 'a.txt', content: 'x\n\ny\n' }],
    ['write a.txt', { verb: 'write', path: 'a.txt', content: '' }],
    ['append a.txt\n| $n', { verb: 'append', path: 'a.txt', content: '$n\n' }],
    ['edit a.txt\n| - old\n| + new\n| +   more', { verb: 'edit', path: 'a.txt', old: 'old', new: 'new\n  more' }],
    ['edit a.txt\n|-old', { verb: 'edit', path: 'a.txt', old: 'old', new: '' }],
    ['move a b -> c', { verb: 'move', from: 'a b', to: 'c' }],
    ['run echo a | wc', { verb: 'run', command: 'echo a | wc' }],
    [
      'ask Which?\n| a: first: one\n| b',
      {
        verb: 'ask',
        question: 'Which?',
        several: false,
        options: [
          { label: 'a', description: 'first: one' },
          { label: 'b', description: '' },
        ],
      },
    ],
    ['ask* Which?', { verb: 'ask*', question: 'Which?', several: true, options: [] }],
    ['permit Shell: may I', { verb: 'permit', tool: 'Shell', sentence: 'may I' }],
    ['wait 20', { verb: 'wait', words: false, ms: 20 }],
    ['wait words', { verb: 'wait', words: true }],
    ['wait words 5', { verb: 'wait', words: true, ms: 5 }],
    ['mode plan', { verb: 'mode', mode: 'plan' }],
    ['usage 1 2 0.5', { verb: 'usage', input: 1, output: 2, costUsd: 0.5 }],
    ['refuse rate_limit too much', { verb: 'refuse', code: 'rate_limit', text: 'too much' }],
    ['outage', { verb: 'outage', times: 1 }],
    ['context 10 200', { verb: 'context', tokens: 10, window: 200 }],
    ['compact', { verb: 'compact' }],
    ['limit 100', { verb: 'limit', percent: 100 }],
    ['limit 0 5000', { verb: 'limit', percent: 0, resetMs: 5000 }],
    ['fast cooldown', { verb: 'fast', state: 'cooldown' }],
    ['retry 3 10', { verb: 'retry', times: 3, ms: 10 }],
    ['code\n| a()\n|\n| b()', { verb: 'code', source: 'a()\n\nb()' }],
    ['offer service a-b 3', { verb: 'offer', offer: 'service', slug: 'a-b', credits: 3 }],
    ['offer capability forge', { verb: 'offer', offer: 'capability', card: 'forge' }],
    ['offer payment https://x/$n 1.50', { verb: 'offer', offer: 'payment', url: 'https://x/$n', amount: '1.50' }],
    [
      'helper look\n| say hi\n| write a\n| | ours',
      { verb: 'helper', description: 'look', prompt: 'say hi\nwrite a\n| ours' },
    ],
    ['helper& look', { verb: 'helper&', description: 'look', prompt: 'look' }],
    ['join', { verb: 'join' }],
    ['fetch http://x', { verb: 'fetch', url: 'http://x' }],
  ]
  for (const [words, expected] of table) t.same(action(words), expected, words)
  t.match(script('repeat 3 say $n'), exactly({ times: 3, name: 'say', input: { text: '$n' } }))
  t.match(script('repeat 2 append a\n| x'), exactly({ times: 2, input: { content: 'x\n' } }))
})

t.test('text after the end of a script is ignored', async t => {
  for (const end of ['---', '## Brief', '##'])
    t.equal(script(`say a\n${end}\nThis Is No Command\n| nor this`).length, 1, end)
})

t.test('a line that does not parse is reported before anything runs', async t => {
  const bad: [string, number, RegExp][] = [
    ['say a\nFoo', 2, /expected a command, found "Foo"/],
    ['say a\n  say b', 2, /expected a command/],
    ['say a\n\n# c\nnope x', 4, /found "nope x"/],
    ['stop now', 1, /stop alone/],
    ['say', 1, /found nothing/],
    ['stop\n| x', 2, /takes no lines/],
    ['todo a', 1, /\[ \] a/],
    ['todo [ ]', 1, /todo/],
    ['read', 1, /read PATH/],
    ['read a 5-2', 1, /first before/],
    ['read a 0-2', 1, /from 1/],
    ['edit a\n| x', 1, /- old/],
    ['edit a', 1, /at least one/],
    ['move a', 1, /FROM -> TO/],
    ['move a -> b -> c', 1, /FROM -> TO/],
    ['permit Shell', 1, /TOOL: SENTENCE/],
    ['wait', 1, /wait MS/],
    ['wait -1', 1, /wait MS/],
    ['wait 99999999999', 1, /at most/],
    ['wait words x', 1, /wait/],
    ['mode root', 1, /bypassPermissions/],
    ['usage 1', 1, /IN OUT/],
    ['usage 1 2 x', 1, /usage/],
    ['refuse nope x', 1, /CODE/],
    ['refuse constructor x', 1, /CODE/],
    ['context 1', 1, /TOKENS WINDOW/],
    ['context 1 0', 1, /window from 1/],
    ['context a b', 1, /TOKENS/],
    ['context 1 2 3', 1, /TOKENS/],
    ['compact now', 1, /compact alone/],
    ['limit', 1, /PERCENT/],
    ['limit 101', 1, /to 100/],
    ['limit -1', 1, /PERCENT/],
    ['limit 5 x', 1, /RESET_MS/],
    ['limit 5 6 7', 1, /PERCENT/],
    ['fast', 1, /fast on/],
    ['fast maybe', 1, /fast on/],
    ['retry 2', 1, /TIMES MS/],
    ['retry 0 5', 1, /TIMES MS/],
    ['retry 1001 1', 1, /1000 times/],
    ['retry 1000 86400000', 1, /in all/],
    ['code', 1, /lines that begin/],
    ['code x', 1, /code alone/],
    ['code x\n| y', 1, /code alone/],
    ['fetch', 1, /fetch URL/],
    ['fetch http://x\n| y', 2, /takes no lines/],
    ['offer', 1, /offer service/],
    ['offer house', 1, /offer service/],
    ['offer service x', 1, /CREDITS/],
    ['offer service x 1.5', 1, /CREDITS/],
    ['offer capability', 1, /CARD/],
    ['offer capability a b', 1, /CARD/],
    ['offer payment https://x', 1, /AMOUNT/],
    ['offer payment https://x free', 1, /AMOUNT/],
    ['offer payment https://x 1 2', 1, /AMOUNT/],
    ['search', 1, /search QUERY/],
    ['browse a b', 1, /browse URL/],
    ['handover phone x', 1, /handover/],
    ['need key', 1, /TITLE/],
    ['verdict maybe x', 1, /verdict/],
    ['die now', 1, /die/],
    ['repeat 3', 1, /repeat N/],
    ['repeat x say a', 1, /repeat N/],
    ['repeat 0 say a', 1, /1 to 10000/],
    ['repeat 10001 say a', 1, /10001/],
    ['repeat 2 repeat 2 say a', 1, /another repeat/],
    ['ask Q\n| a\n| a', 1, /differ/],
    ['ask', 1, /QUESTION/],
    ['helper', 1, /helper DESCRIPTION/],
    ['helper&', 1, /helper& DESCRIPTION/],
    ['join x', 1, /join alone/],
    ['join\n| x', 2, /takes no lines/],
    ['run', 1, /COMMAND/],
  ]
  for (const [words, line, message] of bad) t.match(parse(words), { kind: 'syntax', line, message }, words)
})

t.test('a prompt of 1 MiB is parsed quickly, regardless of its content', async t => {
  const MiB = 1024 * 1024
  const hostile = [
    'say a\n'.repeat(MiB / 6),
    `say\n${'|\n'.repeat(MiB / 2)}`,
    '\n'.repeat(MiB),
    ' '.repeat(MiB),
    `say ${' '.repeat(MiB)}x`,
    `todo ${'|'.repeat(MiB)}`,
    `todo [ ] ${' '.repeat(MiB)}|`,
    `read ${'1-'.repeat(MiB / 2)}`,
    `move ${' -> '.repeat(MiB / 4)}`,
    `repeat ${'1'.repeat(MiB)}`,
    `usage ${'1 '.repeat(MiB / 2)}`,
    '#'.repeat(MiB),
    `/${'a'.repeat(MiB)}`,
    'a'.repeat(MiB),
    `say ${'$'.repeat(MiB)}`,
    `mode ${'\0'.repeat(MiB)}`,
  ]
  for (const words of hostile) {
    const before = performance.now()
    parse(words)
    t.ok(
      inTime(before, 1500),
      `${JSON.stringify(words.slice(0, 12))} took ${Math.round(performance.now() - before)} ms`,
    )
  }
})

t.test('the demo is a script and the help names every verb', async t => {
  t.ok(script(DEMO).length > 6)
  const shown = HELP.split('\n')
    .map(line => /^ {4}([a-z]+[*&]?)(?: |$)/.exec(line)?.[1])
    .filter(verb => verb !== undefined)
  t.same(new Set(shown), new Set([...verbs.keys(), 'repeat']))
  for (const name of ['answer', 'exit', 'out', 'words', 'n', 'run', 'conversation']) t.match(HELP, `$${name}`)
})
