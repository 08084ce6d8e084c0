import { monitorEventLoopDelay } from 'node:perf_hooks'
import t from 'tap'
import type { Frame } from '../../../plugins/agent/contract.js'
import { agent, world } from '../../plugins/agent/providers/acp-support.js'
import { tookLess } from '../../support/in-time.js'
import { someOf } from './hostile-answers.js'
import { HOSTILE_TEXTS, UNSHOWN } from './hostile-texts.js'

t.setTimeout(300_000)

const MIB = 1024 * 1024

/** What an agent program writes in the place of `¤`, as an expression of its own language that gives JSON. */
const VALUES: { readonly [what: string]: string } = {
  deep: `'['.repeat(200000) + ']'.repeat(200000)`,
  'rather deep': `'{"a":'.repeat(3000) + '1' + '}'.repeat(3000)`,
  giant: `JSON.stringify('x'.repeat(${6 * MIB}))`,
  many: `'[' + Array(60000).fill('{"type":"text","text":"x","name":"x","content":"x"}').join(',') + ']'`,
  hostile: `JSON.stringify(${JSON.stringify(HOSTILE_TEXTS.join(' ').toWellFormed())})`,
  'of objects': `'{"__proto__":{"polluted":1},"constructor":{"name":1},"toString":1,"length":1e9,"then":1}'`,
  'beyond all numbers': `'1e308'`,
  null: `'null'`,
}

/** Messages of an agent program, each with one value that is hostile. */
const MESSAGES: { readonly [what: string]: string } = {
  ...Object.fromEntries(
    [
      ['a text', '"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":¤}'],
      ['a content', '"sessionUpdate":"agent_message_chunk","content":¤'],
      [
        'a resource',
        '"sessionUpdate":"agent_message_chunk","content":{"type":"resource","resource":{"uri":¤,"text":¤}}',
      ],
      ['a thought', '"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":¤},"_meta":¤'],
      ['the title of a call', '"sessionUpdate":"tool_call","toolCallId":"a","title":¤,"kind":¤'],
      ['the id of a call', '"sessionUpdate":"tool_call","toolCallId":¤,"title":"x"'],
      ['the input of a call', '"sessionUpdate":"tool_call","toolCallId":"a","title":"x","rawInput":¤,"locations":¤'],
      [
        'the output of a call',
        '"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed","rawOutput":¤,"content":¤',
      ],
      [
        'a change of a call',
        '"sessionUpdate":"tool_call_update","toolCallId":"a",'
          + '"content":[{"type":"diff","path":¤,"oldText":¤,"newText":¤}]',
      ],
      ['a plan', '"sessionUpdate":"plan","entries":¤'],
      ['a step of a plan', '"sessionUpdate":"plan","entries":[{"content":¤,"status":¤,"priority":¤}]'],
      ['commands', '"sessionUpdate":"available_commands_update","availableCommands":¤'],
      ['a mode', '"sessionUpdate":"current_mode_update","currentModeId":¤'],
      ['a title', '"sessionUpdate":"session_info_update","title":¤,"updatedAt":¤'],
      ['a use of tokens', '"sessionUpdate":"usage_update","used":¤,"size":¤,"cost":{"amount":¤,"currency":¤}'],
      ['an unknown update', '"sessionUpdate":¤,"x":¤'],
    ].map(([what, update]) => [
      what!,
      `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{${update}}}}`,
    ]),
  ),
  ...Object.fromEntries(
    [
      [
        'a permission',
        'session/request_permission',
        '"toolCall":{"toolCallId":"p","title":¤,"rawInput":¤},'
          + '"options":[{"optionId":"a","name":¤,"kind":"allow_once"}]',
      ],
      ['options', 'session/request_permission', '"toolCall":{"toolCallId":"p"},"options":¤'],
      ['a path to read', 'fs/read_text_file', '"path":¤,"line":¤'],
      ['a text to write', 'fs/write_text_file', '"path":"a.txt","content":¤'],
      ['a command', 'terminal/create', '"command":¤,"args":¤,"env":¤,"cwd":¤'],
      ['a terminal', 'terminal/output', '"terminalId":¤'],
      ['a question', 'elicitation/create', '"message":¤,"requestedSchema":¤'],
      ['an unknown request', 'x/y', '"z":¤'],
    ].map(([what, method, params]) => [
      what!,
      `{"jsonrpc":"2.0","id":"q","method":"${method}","params":{"sessionId":"s-1",${params}}}`,
    ]),
  ),
  'the id of a request':
    '{"jsonrpc":"2.0","id":¤,"method":"fs/read_text_file","params":{"sessionId":"s-1","path":"a"}}',
  'the name of a method': '{"jsonrpc":"2.0","id":7,"method":¤,"params":¤}',
  'an answer to nothing': '{"jsonrpc":"2.0","id":¤,"result":¤}',
  'a list of messages': '¤',
}

/** A statement that sends a message again and again; `n` counts. */
const times = (count: number, sends: string) => `for (let n = 0; n < ${count}; n++) ${sends}`
const updates = (count: number, kind: string, fields: string) =>
  times(count, `update({ sessionUpdate: '${kind}', ${fields} })`)

/** Ways to send a great number of messages. */
const FLOODS: { readonly [what: string]: string } = {
  'answers to nothing': times(25_000, `send({ id: 'x' + n, result: {} })`),
  'cancelled requests': times(25_000, `send({ method: '$/cancel_request', params: { requestId: n } })`),
  'unknown messages': times(25_000, `send({ method: 'x/' + n, params: {} })`),
  'unknown requests': times(10_000, `send({ id: 'u' + n, method: 'x/y', params: {} })`),
  'changes of a title': updates(10_000, 'session_info_update', `title: 't' + n`),
  'changes of a mode': updates(10_000, 'current_mode_update', `currentModeId: 'm' + n`),
  plans: updates(1_000, 'plan', `entries: Array(200).fill({ content: 'x' + n, status: 'pending', priority: 'low' })`),
  'changes of one call':
    `update({ sessionUpdate: 'tool_call', toolCallId: 'a', title: 'x' });`
    + updates(10_000, 'tool_call_update', `toolCallId: 'a', title: 'x' + n, rawOutput: 'y'.repeat(200)`),
  'empty lines': `process.stdout.write('\\n'.repeat(5000000))`,
}

/** Sends a message once the hostile value is in it, and waits for it to be read. */
const sending = (message: string, value: string) =>
  agent(`process.stdout.write(${JSON.stringify(message)}.replaceAll('¤', () => ${value}) + '\\n'); say('over')`)

const textOf = (frames: readonly Frame[]) => {
  try {
    return JSON.stringify(frames)
  } catch (error) {
    return `Maximum call stack: ${String(error)}`
  }
}

/** Runs the turn of a program, and says what is wrong with how it was taken. */
const taken = async (t: Parameters<typeof world>[0], source: string): Promise<void> => {
  const delay = monitorEventLoopDelay({ resolution: 20 })
  const began = performance.now()
  const { turn, titles, peers } = world(t, source, { patience: { silenceMs: 8_000 } })
  delay.enable()
  const frames = await turn()
  delay.disable()
  await peers.close()
  const text = textOf(frames)
  t.notMatch(text.slice(0, 1_000_000), /Maximum call stack|is not a function|Cannot read prop|Invalid string length/)
  t.ok(text.length < 40 * MIB, `${Math.round(text.length / MIB)} MiB of frames`)
  t.ok(tookLess(delay.max / 1e6, 4_000), `others wait ${Math.round(delay.max / 1e6)} ms`)
  t.ok(tookLess(performance.now() - began, 40_000), `${Math.round(performance.now() - began)} ms`)
  t.equal(
    titles.find(title => UNSHOWN.test(title)),
    undefined,
    'a title has no control characters',
  )
  const failures = frames.flatMap(frame => (frame.kind === 'error' ? [frame.message] : []))
  for (const failure of failures) {
    t.equal(UNSHOWN.exec(failure)?.[0], undefined, failure.slice(0, 200))
    t.ok(failure.length < 10_000)
  }
}

t.test('a hostile value in any message of an agent program ends the turn at most', async t => {
  const cases = Object.entries(MESSAGES).flatMap(([what, message]) =>
    Object.entries(VALUES).map(([how, value]) => ({ name: `${what}, ${how}`, source: sending(message, value) })),
  )
  for (const { name, source } of someOf(cases, 20)) await t.test(name, t => taken(t, source))
  t.ok(process.memoryUsage().rss < 2_000 * MIB, `${Math.round(process.memoryUsage().rss / MIB)} MiB`)
})

t.test('a flood of messages of an agent program ends the turn at most', async t => {
  for (const [what, source] of Object.entries(FLOODS))
    await t.test(what, t => taken(t, agent(`${source}; say('over')`)))
  t.ok(process.memoryUsage().rss < 2_000 * MIB, `${Math.round(process.memoryUsage().rss / MIB)} MiB`)
})
