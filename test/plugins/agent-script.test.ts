import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import type { TurnIo, TurnRequest, Words } from '../../plugins/agent/adapter.js'
import { isCard } from '../../plugins/agent/card-kinds.js'
import type { Card, CardReply, Frame, PermissionMode } from '../../plugins/agent/frames.js'
import { scriptAdapter } from '../../plugins/agent/script/adapter.js'
import { DEMO, HELP } from '../../plugins/agent/script/help.js'
import { parse } from '../../plugins/agent/script/parse.js'
import { verbs } from '../../plugins/agent/script/verbs.js'

// The language ------------------------------------------------------------------------------------------------------

const script = (words: string) => {
  const parsed = parse(words)
  if (parsed.kind !== 'script') throw new Error(`${words}: ${JSON.stringify(parsed)}`)
  return parsed.commands
}
const action = (words: string) => {
  const { name, input } = script(words)[0]!
  return { verb: name, ...input }
}

t.test('the first line that is neither blank nor a comment decides what a prompt is', async t => {
  const kinds: [string, string][] = [
    ['say hi', 'script'], ['\n# a comment\n\nsay hi', 'script'], ['stop', 'script'], ['\r\nsay hi\r\n', 'script'],
    ['', 'plain'], ['\n\n', 'plain'], ['# only a comment', 'plain'], ['Say hi', 'plain'], ['SAY hi', 'plain'], ['  say hi', 'plain'],
    ['saying hi', 'plain'], ['say: hi', 'plain'], ['constructor x', 'plain'], ['toString', 'plain'], ['__proto__ x', 'plain'], ['| say hi', 'plain'], ['---\nsay hi', 'plain'],
    ['## Title\nsay hi', 'plain'], ['Fix the bug\nsay hi', 'plain'], ['/etc/passwd', 'plain'], ['/ help', 'plain'], ['/', 'plain'],
    ['/help', 'slash'], ['/demo now', 'slash'], ['# x\n/nope', 'slash'],
  ]
  for (const [words, kind] of kinds) t.equal(parse(words).kind, kind, JSON.stringify(words))
})

t.test('every command becomes what it says', async t => {
  const table: [string, object][] = [
    ['say  hello  you ', { verb: 'say', text: 'hello  you' }],
    ['say\n| one\n|two\n|  three', { verb: 'say', text: 'one\ntwo\n three' }],
    ['say one\n\n# between\n| two', { verb: 'say', text: 'one\ntwo' }],
    ['think hm', { verb: 'think', text: 'hm' }],
    ['todo [ ] a | [~] b c | [x] d', { verb: 'todo', items: [{ content: 'a', status: 'pending' }, { content: 'b c', status: 'in_progress' }, { content: 'd', status: 'completed' }] }],
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
    ['ask Which?\n| a: first: one\n| b', { verb: 'ask', question: 'Which?', several: false, options: [{ label: 'a', description: 'first: one' }, { label: 'b', description: '' }] }],
    ['ask* Which?', { verb: 'ask*', question: 'Which?', several: true, options: [] }],
    ['permit Shell: may I', { verb: 'permit', tool: 'Shell', sentence: 'may I' }],
    ['wait 20', { verb: 'wait', words: false, ms: 20 }], ['wait words', { verb: 'wait', words: true }], ['wait words 5', { verb: 'wait', words: true, ms: 5 }],
    ['mode plan', { verb: 'mode', mode: 'plan' }],
    ['usage 1 2 0.5', { verb: 'usage', input: 1, output: 2, costUsd: 0.5 }],
    ['refuse rate_limit too much', { verb: 'refuse', code: 'rate_limit', text: 'too much' }],
    ['outage', { verb: 'outage', times: 1 }],
    ['context 10 200', { verb: 'context', tokens: 10, window: 200 }], ['compact', { verb: 'compact' }],
    ['limit 100', { verb: 'limit', percent: 100 }], ['limit 0 5000', { verb: 'limit', percent: 0, resetMs: 5000 }],
    ['fast cooldown', { verb: 'fast', state: 'cooldown' }], ['retry 3 10', { verb: 'retry', times: 3, ms: 10 }],
    ['code\n| a()\n|\n| b()', { verb: 'code', source: 'a()\n\nb()' }],
    ['offer service a-b 3', { verb: 'offer', offer: 'service', slug: 'a-b', credits: 3 }],
    ['offer capability forge', { verb: 'offer', offer: 'capability', card: 'forge' }],
    ['offer payment https://x/$n 1.50', { verb: 'offer', offer: 'payment', url: 'https://x/$n', amount: '1.50' }],
    ['helper look\n| say hi\n| write a\n| | ours', { verb: 'helper', description: 'look', prompt: 'say hi\nwrite a\n| ours' }],
    ['helper& look', { verb: 'helper&', description: 'look', prompt: 'look' }],
    ['join', { verb: 'join' }],
    ['fetch http://x', { verb: 'fetch', url: 'http://x' }],
  ]
  for (const [words, expected] of table) t.same(action(words), expected, words)
  t.match(script('repeat 3 say $n'), [{ times: 3, name: 'say', input: { text: '$n' } }])
  t.match(script('repeat 2 append a\n| x'), [{ times: 2, input: { content: 'x\n' } }])
})

t.test('what stands behind the end of a script is not read', async t => {
  for (const end of ['---', '## Brief', '##'])
    t.equal(script(`say a\n${end}\nThis Is No Command\n| nor this`).length, 1, end)
})

t.test('a line that does not parse is named before anything runs', async t => {
  const bad: [string, number, RegExp][] = [
    ['say a\nFoo', 2, /expected a command, found "Foo"/], ['say a\n  say b', 2, /expected a command/],
    ['say a\n\n# c\nnope x', 4, /found "nope x"/], ['stop now', 1, /stop alone/], ['say', 1, /found nothing/], ['stop\n| x', 2, /takes no lines/],
    ['todo a', 1, /\[ \] a/], ['todo [ ]', 1, /todo/], ['read', 1, /read PATH/], ['read a 5-2', 1, /first before/], ['read a 0-2', 1, /from 1/],
    ['edit a\n| x', 1, /- old/], ['edit a', 1, /at least one/], ['move a', 1, /FROM -> TO/], ['move a -> b -> c', 1, /FROM -> TO/],
    ['permit Shell', 1, /TOOL: SENTENCE/], ['wait', 1, /wait MS/], ['wait -1', 1, /wait MS/], ['wait 99999999999', 1, /at most/], ['wait words x', 1, /wait/],
    ['mode root', 1, /bypassPermissions/], ['usage 1', 1, /IN OUT/], ['usage 1 2 x', 1, /usage/], ['refuse nope x', 1, /CODE/], ['refuse constructor x', 1, /CODE/],
    ['context 1', 1, /TOKENS WINDOW/], ['context 1 0', 1, /window from 1/], ['context a b', 1, /TOKENS/], ['context 1 2 3', 1, /TOKENS/],
    ['compact now', 1, /compact alone/], ['limit', 1, /PERCENT/], ['limit 101', 1, /to 100/], ['limit -1', 1, /PERCENT/], ['limit 5 x', 1, /RESET_MS/], ['limit 5 6 7', 1, /PERCENT/],
    ['fast', 1, /fast on/], ['fast maybe', 1, /fast on/], ['retry 2', 1, /TIMES MS/], ['retry 0 5', 1, /TIMES MS/], ['retry 1001 1', 1, /1000 times/], ['retry 1000 86400000', 1, /in all/],
    ['code', 1, /lines that begin/], ['code x', 1, /code alone/], ['code x\n| y', 1, /code alone/], ['fetch', 1, /fetch URL/], ['fetch http://x\n| y', 2, /takes no lines/],
    ['offer', 1, /offer service/], ['offer house', 1, /offer service/], ['offer service x', 1, /CREDITS/], ['offer service x 1.5', 1, /CREDITS/], ['offer capability', 1, /CARD/],
    ['offer capability a b', 1, /CARD/], ['offer payment https://x', 1, /AMOUNT/], ['offer payment https://x free', 1, /AMOUNT/], ['offer payment https://x 1 2', 1, /AMOUNT/],
    ['search', 1, /search QUERY/], ['browse a b', 1, /browse URL/], ['handover phone x', 1, /handover/], ['need key', 1, /TITLE/], ['verdict maybe x', 1, /verdict/], ['die now', 1, /die/],
    ['repeat 3', 1, /repeat N/], ['repeat x say a', 1, /repeat N/], ['repeat 0 say a', 1, /1 to 10000/], ['repeat 10001 say a', 1, /10001/],
    ['repeat 2 repeat 2 say a', 1, /another repeat/], ['ask Q\n| a\n| a', 1, /differ/], ['ask', 1, /QUESTION/], ['helper', 1, /helper DESCRIPTION/], ['helper&', 1, /helper& DESCRIPTION/], ['join x', 1, /join alone/], ['join\n| x', 2, /takes no lines/], ['run', 1, /COMMAND/],
  ]
  for (const [words, line, message] of bad) t.match(parse(words), { kind: 'syntax', line, message }, words)
})

t.test('a prompt of a mebibyte is read in a moment, however it is made', async t => {
  const MiB = 1024 * 1024
  const hostile = [
    'say a\n'.repeat(MiB / 6), `say\n${'|\n'.repeat(MiB / 2)}`, '\n'.repeat(MiB), ' '.repeat(MiB), `say ${' '.repeat(MiB)}x`,
    `todo ${'|'.repeat(MiB)}`, `todo [ ] ${' '.repeat(MiB)}|`, `read ${'1-'.repeat(MiB / 2)}`, `move ${' -> '.repeat(MiB / 4)}`,
    `repeat ${'1'.repeat(MiB)}`, `usage ${'1 '.repeat(MiB / 2)}`, '#'.repeat(MiB), `/${'a'.repeat(MiB)}`, 'a'.repeat(MiB), `say ${'$'.repeat(MiB)}`, `mode ${'\0'.repeat(MiB)}`,
  ]
  for (const words of hostile) {
    const before = performance.now()
    parse(words)
    t.ok(performance.now() - before < 1500, `${JSON.stringify(words.slice(0, 12))} took ${Math.round(performance.now() - before)} ms`)
  }
})

t.test('the demo is a script and the help names every verb it has', async t => {
  t.ok(script(DEMO).length > 6)
  const shown = HELP.split('\n').map(line => /^([a-z]+[*&]?)(?: |$)/.exec(line)?.[1]).filter(verb => verb !== undefined)
  t.same(new Set(shown), new Set([...verbs.keys(), 'repeat']))
  for (const name of ['answer', 'exit', 'out', 'words', 'n', 'run', 'conversation']) t.match(HELP, `$${name}`)
})

// A world that can die at any moment ----------------------------------------------------------------------------------

const words = (text: string): Words => ({ messageId: `m-${text}`, text, attachments: [] })

const DEAD = Symbol('dead')

interface Setup {
  words: string
  replies?: CardReply[]
  said?: string[]
  attended?: boolean
  mode?: PermissionMode
}

/** The engine's side of `TurnIo`, kept in memory; it dies for good at its nth step when told to. */
class World {
  files = new Map<string, string>([['notes.txt', 'one\ntwo\n']])
  log: Frame[] = []
  state: unknown
  stateAt = 0
  steps = 0
  dieAt = Infinity
  shells: string[] = []
  saves = 0
  modes: PermissionMode[] = []
  readonly stop = new AbortController()
  readonly setup: Setup

  constructor(setup: Setup) {
    this.setup = setup
  }

  async step(): Promise<void> {
    if (++this.steps >= this.dieAt) throw DEAD
  }

  async frame(frame: Frame): Promise<void> {
    await this.step()
    this.log.push(structuredClone(frame))
  }

  request(attempt: number): TurnRequest {
    const open = this.cards
      .filter(card => !this.log.some(frame => frame.kind === 'resolved' && frame.requestId === card.requestId))
    const { words, replies = [], attended = true, mode = 'bypassPermissions' } = this.setup
    const answered = open.map(card => ({ card, reply: replies[Number(card.requestId)]! }))
    for (const { card, reply } of answered) this.log.push({ kind: 'resolved', requestId: card.requestId, reply })
    return {
      conversationId: 'c-1', run: 'r-1', attempt, prompt: words, words, attachments: [], mentions: [], harness: 'native', model: 'script',
      permissionMode: mode, attended, depth: 0, helpers: { atOnce: 20, perTurn: 200, depth: 3 },
      ...(attempt > 1 && {
        ...(this.state !== undefined && { state: structuredClone(this.state) }),
        since: this.log.slice(this.stateAt), resume: { reason: open.length ? 'answered' : 'restart', replies: answered },
      }),
    }
  }

  io(): TurnIo {
    return {
      signal: this.stop.signal,
      gap: async ms => {
        if (ms) await delay(ms, undefined, { signal: this.stop.signal }).catch(() => {})
        return false
      },
      takeWords: () => this.setup.said?.splice(0).map(words) ?? [],
      waitWords: async () => this.setup.said?.splice(0, 1).map(words)[0],
      raise: async draft => {
        const requestId = String(this.cards.length)
        await this.frame({ ...draft, requestId } as Frame)
        await this.step()
        const reply = this.setup.replies?.[Number(requestId)]
        await this.frame({ kind: 'resolved', requestId, ...(reply && { reply }) })
        return reply
      },
      tool: async (name, input, id) => {
        await this.frame({ kind: 'tool_call', id, name, category: 'other', status: 'in_progress' })
        await this.step()
        const { ok, text, exit } = this.effect(name, input as never)
        const content = [{ type: 'text' as const, text: exit ? `${text}\n[exit ${exit}]` : text }]
        await this.frame({ kind: 'tool_call_update', id, status: ok ? 'completed' : 'failed', content })
        return { ok, text, content, ...(exit !== undefined && { exit }) }
      },
      permit: async () => ({ allow: true }),
      walled: () => Promise.reject(new Error('the interpreter starts no programs')),
      helper: async () => ({ status: 'failed', summary: 'no helpers here' }),
      stamp: async path => this.files.get(path),
      state: async value => {
        await this.step()
        this.saves++
        this.state = structuredClone(value)
        this.stateAt = this.log.length
      },
      mode: mode => {
        this.modes.push(mode)
        this.log.push({ kind: 'mode', mode })
      },
    }
  }

  effect(name: string, input: { [field: string]: string }): { ok: boolean; text: string; exit?: number } {
    const { path = '', content = '', old = '', from = '', to = '' } = input
    const file = this.files.get(path)
    switch (name) {
      case 'Write':
        this.files.set(path, content)
        break
      case 'Append':
        this.files.set(path, (file ?? '') + content)
        break
      case 'Edit':
        if (file?.split(old).length !== 2) return { ok: false, text: 'not exactly once' }
        this.files.set(path, file.split(old).join(input.new))
        break
      case 'Delete':
        if (!this.files.delete(path)) return { ok: false, text: 'no such file' }
        break
      case 'Move': {
        const moved = this.files.get(from)
        if (moved === undefined) return { ok: false, text: 'no such file' }
        this.files.delete(from)
        this.files.set(to, moved)
        break
      }
      case 'Read':
        return file === undefined ? { ok: false, text: `nothing is named ${path}` } : { ok: true, text: file }
      case 'Shell':
        this.shells.push(input.command!)
        return input.command!.startsWith('exit ') ? { ok: false, text: 'ended', exit: Number(input.command!.slice(5)) } : { ok: true, text: `ran ${input.command}\n`, exit: 0 }
    }
    return { ok: true, text: 'done' }
  }

  async run(attempt = 1): Promise<this> {
    try {
      for await (const frame of scriptAdapter.run(this.request(attempt), this.io())) await this.frame(frame)
    } catch (error) {
      if (error !== DEAD) throw error
    }
    return this
  }

  get cards(): Card[] {
    return this.log.filter(isCard)
  }

  get kinds(): string[] {
    return this.log.map(({ kind }) => kind)
  }

  get prose(): string {
    return this.log.map(frame => (frame.kind === 'delta' ? frame.text : frame.kind === 'text_end' ? '\n' : '')).join('')
  }

  find<K extends Frame['kind']>(kind: K): Extract<Frame, { kind: K }>[] {
    return this.log.filter((frame): frame is Extract<Frame, { kind: K }> => frame.kind === kind)
  }
}

const play = (words: string, more: Omit<Setup, 'words'> = {}) => new World({ words, ...more }).run()
const prose = async (words: string, more?: Omit<Setup, 'words'>) => (await play(words, more)).prose

// What the interpreter does -------------------------------------------------------------------------------------------

t.test('a turn begins with session, init and commands and ends with usage', async t => {
  const { kinds, log, prose } = await play('say one two\nthink hm')
  t.same(kinds, ['session', 'init', 'commands', 'delta', 'delta', 'text_end', 'thinking', 'usage'])
  t.equal(prose, 'one two\n')
  t.match(log.at(-1), { inputTokens: 5, outputTokens: 3, costUsd: 0 })
})

t.test('plain words are repeated, cut at 200 characters, with a pointer to the help', async t => {
  t.match(await prose('Fix $out please'), /^You said: Fix \$out please\n\n.*\/help/)
  t.match(await prose('😀'.repeat(300)), new RegExp(`^You said: ${'😀'.repeat(200)}\n`))
  t.match((await play('/nope')).log.at(-1), { kind: 'error', code: 'unknown-command', message: /\/nope/ })
  t.equal(await prose('/help'), `${HELP}\n`)
})

t.test('a later line that does not parse ends the turn before anything has run', async t => {
  const { files, log } = await play('write a.txt\n| x\nnonsense')
  t.match(log.at(-1), { kind: 'error', code: 'script-syntax', message: /^line 3: / })
  t.notOk(files.has('a.txt'))
})

t.test('the demo thinks, lists, writes, runs, asks and says', async t => {
  const { kinds, files, shells, prose } = await play('/demo', { replies: [{ kind: 'question', requestId: '0', answers: {} }] })
  for (const kind of ['thinking', 'todos', 'tool_call', 'question', 'delta'] as const) t.ok(kinds.includes(kind), kind)
  t.match(files.get('sandbox-demo.md'), /^# Hello/)
  t.equal(shells.length, 1)
  t.match(prose, /sandbox-demo\.md/)
})

t.test('variables are replaced once, and what is no variable stays', async t => {
  t.equal(await prose('run x\nsay $exit $out $$out $nope $name $n $run $conversation $'), '0 ran x $out $nope $name 1 r-1 c-1 $\n')
  t.equal(await prose('run exit 3\nsay $exit'), '3\n')
  t.equal(await prose('read missing\nsay $out'), 'nothing is named missing\n')
  t.equal(await prose('repeat 3 say $n'), '1\n2\n3\n')
  t.equal(await prose('read notes.txt\nsay $out.$out_$outs'), 'one\ntwo.$out_$outs\n')
})

t.test('a text that grows beyond bounds fails the turn with its line', async t => {
  const world = new World({ words: `read big\nsay ${'$out'.repeat(200)}` })
  world.files.set('big', 'x'.repeat(60_000))
  await world.run()
  t.match(world.log.at(-1), { kind: 'error', message: /^line 2: .*too long/ })
})

t.test('a question gives its answer, several are joined, a skipped one is empty and a cancelled one ends the turn', async t => {
  const ask = (verb: string, answers?: { [q: string]: string | string[] }, cancelled?: boolean) =>
    prose(`${verb} Which?\n| a: x\nsay [$answer]`, { replies: [{ kind: 'question', requestId: '0', ...(answers && { answers }), ...(cancelled && { cancelled }) }] })
  t.equal(await ask('ask', { 'Which?': 'a' }), '[a]\n')
  t.equal(await ask('ask*', { 'Which?': ['a', 'b'] }), '[a, b]\n')
  t.equal(await ask('ask', {}), '[]\n')
  t.equal(await ask('ask', undefined, true), '')
})

t.test('a plan that is approved leaves plan mode, one that is not ends the turn with the feedback', async t => {
  const yes = await play('plan\n| do it\nsay on', { mode: 'plan', replies: [{ kind: 'plan', requestId: '0', approve: true }] })
  t.same([yes.modes, yes.prose], [['bypassPermissions'], 'on\n'])
  const narrow = await play('plan do it\nsay on', { mode: 'default', replies: [{ kind: 'plan', requestId: '0', approve: true }] })
  t.same(narrow.modes, ['default'], 'and no other mode is widened')
  t.equal(await prose('plan do it\nsay on', { replies: [{ kind: 'plan', requestId: '0', approve: false, feedback: 'smaller' }] }), 'smaller\n')
})

t.test('a permission gives its decision, and nobody to answer is a no', async t => {
  t.equal(await prose('permit Shell: may I\nsay $answer', { replies: [{ kind: 'permission', requestId: '0', decision: 'always' }] }), 'always\n')
  t.equal(await prose('permit Shell: may I\nsay $answer'), 'deny\n')
})

t.test('an unattended turn raises no card and goes on', async t => {
  const { kinds, prose } = await play('ask Q\nplan P\npermit T: s\nsay on', { attended: false })
  t.notOk(kinds.some(kind => ['question', 'plan', 'permission'].includes(kind)))
  t.equal(prose, 'on\n')
})

t.test('what this sandbox lacks is a failed tool call with a reason, and the script goes on', async t => {
  const { log, prose } = await play('browse http://x\nneed key h\n| say no\nverdict done x\nsay on')
  const calls = log.filter(frame => frame.kind === 'tool_call')
  const updates = log.filter(frame => frame.kind === 'tool_call_update')
  t.match(calls, [{ id: 'c1', name: 'Browser', target: 'http://x' }, { id: 'c2', name: 'Need' }, { id: 'c3' }])
  t.match(updates, [{ id: 'c1', status: 'failed', content: [{ text: /^browse is not available/ }] }, { id: 'c2' }, { id: 'c3' }])
  t.equal(prose, 'on\n')
})

t.test('words said into the turn are heard between commands and by wait words', async t => {
  t.equal(await prose('say first\nsay $words', { said: ['hello'] }), 'first\nhello\n')
  t.equal(await prose('say a\nwait words\nsay $words', { said: ['one', 'two'] }), 'a\none\ntwo\n')
  t.equal(await prose('wait words 0\nsay [$words]'), '[]\n')
})

t.test('expect, fail, refuse, outage and stop end the turn as they say', async t => {
  t.match((await play('run x\nexpect ran\nexpect nope\nsay no')).log.at(-1), { kind: 'error', message: /expected "nope".*found "ran x"/ })
  t.match((await play('fail it broke\nsay no')).log.at(-1), { kind: 'error', message: 'it broke' })
  t.match((await play('refuse rate_limit enough')).log.at(-1), { kind: 'error', code: 'rate_limit', message: 'enough' })
  t.match((await play('outage')).log.at(-1), { kind: 'error', code: 'provider-outage' })
  t.match((await play('usage 7 8 0.5\nstop\nsay no')).log.at(-1), { kind: 'usage', inputTokens: 7, outputTokens: 8, costUsd: 0.5 })
})

t.test('call ids are unique in the run and say which command they belong to', async t => {
  const ids = (await play('read a\nrepeat 3 read b\nrun x')).find('tool_call').map(({ id }) => id)
  t.same(ids, ['c1', 'c2.1', 'c2.2', 'c2.3', 'c3'])
})

t.test('ten thousand repeats take time in proportion', async t => {
  const time = async (n: number) => {
    const before = performance.now()
    const world = await play(`repeat ${n} say a b c`)
    t.equal(world.find('text_end').length, n)
    return performance.now() - before
  }
  await time(500)
  const [short, long] = [await time(1000), await time(10_000)]
  t.ok(long < Math.max(short, 20) * 40, `${Math.round(short)} ms for 1000, ${Math.round(long)} ms for 10000`)
})

t.test('a word without end is cut into frames of bounded size, none of them half a character', async t => {
  const { log, prose } = await play(`say ${'😀'.repeat(5000)}`)
  const texts = log.flatMap(frame => (frame.kind === 'delta' ? [frame.text] : []))
  t.ok(texts.every(text => text.isWellFormed() && Buffer.byteLength(text) <= 8192))
  t.equal(prose, `${'😀'.repeat(5000)}\n`)
})

t.test('a stop ends whatever the script does', async t => {
  for (const words of ['wait 60000', 'wait words', 'run x', 'ask Q', 'repeat 10000 say a', 'say a\nrun x']) {
    const world = new World({ words })
    const never = () => new Promise<never>(() => {})
    const io = { ...world.io(), waitWords: never, tool: never, raise: never }
    setTimeout(() => world.stop.abort(), 5)
    let last: Frame | undefined
    for await (const frame of scriptAdapter.run(world.request(1), io)) {
      last = frame
      if (words.startsWith('repeat')) await new Promise(resolve => setImmediate(resolve))
    }
    t.equal(last?.kind, 'usage', words)
  }
})

// Restarts ------------------------------------------------------------------------------------------------------------

const LONG = `think start
say alpha beta gamma
todo [~] one | [ ] two
write a.txt
| first
repeat 3 append a.txt
| line $n
edit a.txt
| - line 2
| + line 2 line 2
move a.txt -> b.txt
append notes.txt
| three
delete notes.txt
ask Which?
| x: y
permit Shell: may I
plan go
repeat 5 say n $n
mode acceptEdits
fetch http://x
offer service translate 3
offer capability forge
offer payment https://x 1
context 5 9
compact
limit 50
fast on
retry 3 1
wait 1
read b.txt
say $out $answer end`

const REPLIES: CardReply[] = [
  { kind: 'question', requestId: '0', answers: { 'Which?': 'x' } },
  { kind: 'permission', requestId: '1', decision: 'once' },
  { kind: 'plan', requestId: '2', approve: true },
  { kind: 'service_offer', requestId: '3', approve: true },
  { kind: 'capability_offer', requestId: '4', connect: true },
  { kind: 'payment_offer', requestId: '5', approve: true },
]

/** Kinds of frames that one run of it holds once. */
const ONCE = [
  'thinking', 'todos', 'usage', 'session', 'question', 'plan', 'permission', 'service_offer', 'service_receipt', 'capability_offer',
  'capability_outcome', 'payment_offer', 'payment_receipt', 'context_usage', 'compact', 'rate_limit_info', 'account_usage', 'fast_mode',
]

t.test('a turn killed at any moment and started again says and does everything exactly once', async t => {
  const whole = await play(LONG, { replies: REPLIES })
  t.equal(whole.files.get('b.txt'), 'first\nline 1\nline 2 line 2\nline 3\n')
  let wrong = 0
  for (let dieAt = 1; dieAt <= whole.steps; dieAt++) {
    const world = new World({ words: LONG, replies: REPLIES })
    world.dieAt = dieAt
    await world.run()
    world.dieAt = Infinity
    await world.run(2)
    const same = world.prose === whole.prose && JSON.stringify([...world.files]) === JSON.stringify([...whole.files])
      && ONCE.every(kind => world.kinds.filter(k => k === kind).length === 1)
      && world.find('service_event').length === 2 && world.find('provider_retry').map(({ attempt }) => attempt).join() === '1,2,3'
    if (!same) {
      wrong++
      t.same({ prose: world.prose, files: [...world.files], kinds: world.kinds }, { prose: whole.prose, files: [...whole.files], kinds: whole.kinds }, `killed at step ${dieAt}`)
    }
  }
  t.equal(wrong, 0, `${whole.steps} places to die`)
})

t.test('a command that may have run is never run again, and says so', async t => {
  const words = 'say a\nrun deploy\nsay $exit: $out'
  const { steps } = await play(words)
  const ends = new Set<string>()
  for (let dieAt = 1; dieAt <= steps; dieAt++) {
    const world = new World({ words })
    world.dieAt = dieAt
    await world.run()
    world.dieAt = Infinity
    await world.run(2)
    t.ok(world.shells.length <= 1, `killed at step ${dieAt}`)
    const closed = world.find('tool_call_update')
    t.equal(closed.length, 1, 'and its call is closed once')
    ends.add(world.prose)
  }
  t.same([...ends].sort(), ['a\n0: ran deploy\n', 'a\n1: interrupted by a restart\n'])
})

t.test('two restarts in a row lose and double nothing either', async t => {
  const words = 'say one two three four\nappend notes.txt\n| x\nsay five'
  const { steps } = await play(words)
  for (let first = 1; first <= steps; first++)
    for (let second = 1; second <= steps; second += 2) {
      const world = new World({ words })
      world.dieAt = first
      await world.run()
      world.dieAt = world.steps + second
      await world.run(2)
      world.dieAt = Infinity
      await world.run(3)
      if (world.prose !== 'one two three four\nfive\n' || world.files.get('notes.txt') !== 'one\ntwo\nx\n') t.fail(`killed at ${first} and ${second}: ${world.prose}`)
    }
})

t.test('a say whose log holds a masked secret goes on behind it', async t => {
  const world = new World({ words: 'say the key is s3cret and more' })
  world.log = [{ kind: 'session', sessionId: 's' }, { kind: 'delta', text: 'the key is {{secret:KEY}} ' }]
  await world.run(2)
  t.equal(world.prose, 'the key is {{secret:KEY}} and more\n')
})

t.test('words said before the restart and not yet used are still heard', async t => {
  const world = new World({ words: 'wait words\nsay $words', said: ['hello'] })
  world.log = [{ kind: 'steer', text: 'hello', sentAt: 1, messageId: 'm-hello' }]
  await world.run(2)
  t.equal(world.prose, 'hello\n')
})

t.test('a wait killed in the middle waits only for what is left', async t => {
  const world = new World({ words: 'wait 3600000\nsay done' })
  world.dieAt = 6
  const first = world.run()
  await new Promise(resolve => setImmediate(resolve))
  t.match(world.state, { until: Number })
  world.stop.abort()
  await first
  const later = new World(world.setup)
  later.state = { ...(world.state as object), until: Date.now() - 1 }
  t.equal((await later.run(2)).prose, 'done\n')
})

t.test('a call that was held when the daemon died is made again once it is answered', async t => {
  const world = new World({ words: 'run deploy\nsay $exit', replies: [{ kind: 'permission', requestId: '0', decision: 'once' }] })
  world.dieAt = 5
  await world.run()
  world.dieAt = Infinity
  world.log.push({ kind: 'tool_call', id: 'c1', name: 'Shell', category: 'execute', status: 'pending' }, { kind: 'permission', requestId: '0', toolName: 'Shell' })
  await world.run(2)
  t.same([world.shells, world.prose], [['deploy'], '0\n'])
})

t.test('a saved state from elsewhere is refused and nothing runs', async t => {
  const world = new World({ words: 'run x' })
  world.state = { version: 99 }
  await world.run(2)
  t.match(world.log.at(-1), { kind: 'error', message: /cannot be read/ })
  t.same(world.shells, [])
})
