import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Frame, HelperStatus } from '../../plugins/agent/contract.js'
import { daemonWith, type Support } from '../support/daemon.js'
import { framesOf, runTurn } from '../support/turns.js'
import { state, transcript } from './agent-support.js'

type Kind<K extends Frame['kind']> = Extract<Frame, { kind: K }>

/** A line of a script as it stands inside so many helpers. */
const inside = (depth: number, line: string): string => `${'| '.repeat(depth)}${line}`
const of = <K extends Frame['kind']>(frames: readonly Frame[], kind: K): Kind<K>[] => frames.filter((frame): frame is Kind<K> => frame.kind === kind)
const textOf = (frames: readonly Frame[], parent?: string): string =>
  of(frames, 'delta').filter(frame => frame.parentToolUseId === parent).map(({ text }) => text).join('')
const call = (frames: readonly Frame[], id: string): Kind<'tool_call'> | undefined => of(frames, 'tool_call').find(frame => frame.id === id)
const result = (frames: readonly Frame[], id: string): Kind<'tool_call_update'> | undefined => of(frames, 'tool_call_update').findLast(frame => frame.id === id)
const ends = (frames: readonly Frame[]): [string, HelperStatus][] =>
  of(frames, 'subagent_update').flatMap(({ id, status }): [string, HelperStatus][] => (status && !['running', 'blocked'].includes(status) ? [[id, status]] : []))

/** Rules 5 and 6 of the frame log, and that every helper ended before the run did. */
const isWhole = (t: Test, frames: readonly Frame[]): void => {
  const started = new Set<string>()
  const open = new Set<string>()
  const known = new Set<string>()
  for (const frame of frames) {
    if ('parentToolUseId' in frame && frame.parentToolUseId !== undefined && !started.has(frame.parentToolUseId)) t.fail(`${frame.kind} of an unknown helper`)
    if (frame.kind === 'tool_call') {
      if (known.has(frame.id)) t.fail(`two calls ${frame.id}`)
      known.add(frame.id)
      open.add(frame.id)
    }
    if (frame.kind === 'tool_call_update' && (frame.status === 'completed' || frame.status === 'failed')) open.delete(frame.id)
    if (frame.kind === 'subagent') started.add(frame.id)
  }
  t.same([...open], [], 'every call is closed')
  t.same(ends(frames).map(([id]) => id).sort(), [...started].sort(), 'every helper ends once')
  t.equal(frames.at(-1)?.kind, 'done')
}

const settings = ({ workspace }: Support, values: object): void => {
  mkdirSync(join(workspace, '.sandbox', 'config'), { recursive: true })
  writeFileSync(join(workspace, '.sandbox', 'config', 'settings.json'), JSON.stringify(values))
}

t.test('a helper works in the same tree, says what it did under the call that started it, and its last words come back', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const frames = await runTurn(daemon.client, 'a', 'say first\nhelper look around\n| think hm\n| write made.txt\n| | by a helper\n| say found\n| say made it\nsay it said $out')
  isWhole(t, frames)
  t.match(call(frames, 'c2'), { name: 'Delegate', category: 'other', target: 'look around', parentToolUseId: undefined })
  const at = (fits: (frame: Frame) => boolean) => frames.findIndex(fits)
  const [began, ended] = [at(({ kind }) => kind === 'subagent'), at(frame => frame.kind === 'subagent_update' && frame.status !== undefined)]
  t.match(frames[began], { id: 'c2', subagentKind: 'subagent', description: 'look around', model: 'script' })
  t.match(frames[ended], { id: 'c2', status: 'completed', summary: 'made it' })
  t.match(call(frames, 'c2:c2'), { name: 'Write', parentToolUseId: 'c2', target: 'made.txt' })
  for (const [index, frame] of frames.entries()) if ('parentToolUseId' in frame && frame.parentToolUseId) t.ok(index > began && index < ended, frame.kind)
  t.match(of(frames, 'subagent_update').map(({ toolUses, lastTool, tokens }) => [toolUses, lastTool, tokens !== undefined]), [[1, 'Write', false], [undefined, undefined, true], []])
  t.match(result(frames, 'c2'), { status: 'completed', content: [{ text: 'made it' }] })
  t.equal(textOf(frames, 'c2'), 'foundmade it')
  t.equal(textOf(frames), 'firstit said made it')
  t.equal(readFileSync(join(daemon.workspace, 'made.txt'), 'utf8'), 'by a helper\n')
  t.equal(of(frames, 'session').length, 1)
  const { messages } = await transcript(daemon, 'a')
  t.match(messages.map(({ text }) => text).slice(1), ['first', 'it said made it'])
  t.match(messages[1]?.tools, [{ id: 'c2', thinking: 'hm', status: 'completed', children: [{ id: 'c2:c2', name: 'Write', status: 'completed' }] }])
  const { totals } = (await state(daemon, 'a')).conversation
  t.match(totals, { turns: 1, helpers: 1, toolUses: 2 })
  t.equal(totals.inputTokens, of(frames, 'usage').reduce((sum, { inputTokens = 0 }) => sum + inputTokens, 0), 'what it used counts')
  t.equal(of(frames, 'usage').length, 2)
})
