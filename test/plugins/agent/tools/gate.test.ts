import t from 'tap'
import type { GatedCall } from '../../../../plugins/agent/providers/adapter.js'
import type { PermissionMode, ToolCategory } from '../../../../plugins/agent/turn/frames/frames.js'
import { decide, type GateState } from '../../../../plugins/agent/tools/gate.js'
import { isReadOnly } from '../../../../plugins/agent/tools/read-only.js'
import { POWERED_TOOLS } from '../../../../sdk/node/access/powers.js'
import { tools } from '../../../../plugins/agent/tools/tools.js'

const call = (category: ToolCategory, more: Partial<GatedCall> = {}): GatedCall => ({
  id: 'c1',
  name: 'Tool',
  category,
  ...more,
})
const state = (mode: PermissionMode, more: Partial<GateState> = {}): GateState => ({
  mode,
  attended: true,
  remembered: new Set(),
  ...more,
})

t.test('the mode decides per category', async t => {
  const categories: ToolCategory[] = ['read', 'search', 'think', 'edit', 'delete', 'move', 'execute', 'fetch', 'other']
  const table: { [mode in PermissionMode]: string } = {
    default: 'go go go ask ask ask ask ask ask',
    acceptEdits: 'go go go go go go ask ask ask',
    plan: 'go go go refuse refuse refuse refuse go go',
    bypassPermissions: 'go go go go go go go go go',
  }
  for (const [mode, verdicts] of Object.entries(table)) {
    t.equal(
      categories.map(category => decide(call(category), state(mode as PermissionMode)).verdict).join(' '),
      verdicts,
      mode,
    )
  }
})

t.test('a tool the turn may not use is refused in every mode, and an empty list allows none', async t => {
  for (const mode of ['default', 'bypassPermissions'] as const) {
    t.match(decide(call('read', { name: 'Shell' }), state(mode, { allowedTools: ['Read'] })), {
      verdict: 'refuse',
      reason: /may not use Shell: it may use Read/,
    })
    t.match(decide(call('read'), state(mode, { allowedTools: [] })), { verdict: 'refuse', reason: /may use none/ })
  }
  t.equal(decide(call('read'), state('default', { allowedTools: ['Tool'] })).verdict, 'go')
  t.equal(
    decide(call('edit'), state('default', { allowedTools: ['Tool'] })).verdict,
    'ask',
    'an allowed tool still needs permission',
  )
})

t.test('tool names are compared as a whole, not by prefix or suffix', t => {
  for (const name of ['DelegateAll', 'Join2', 'ReJoin', 'join'])
    t.equal(decide(call('other', { name }), state('default')).verdict, 'ask', name)
  for (const name of ['ReadAll', 'Rea', 'read']) {
    t.equal(
      decide(call('read', { name }), state('bypassPermissions', { allowedTools: ['Read'] })).verdict,
      'refuse',
      name,
    )
    t.equal(decide(call('execute', { name }), state('default', { remembered: new Set(['Read']) })).verdict, 'ask', name)
  }
  t.end()
})

t.test('only tools that read run without permission, each by its own kind', t => {
  const goes = (category: ToolCategory, mode: PermissionMode) =>
    decide(call(category, { name: 'Tool' }), state(mode)).verdict === 'go'
  const names = (mode: PermissionMode) => Object.keys(tools).filter(name => goes(tools[name]!.category, mode))
  t.same(names('default'), ['Read', 'List', 'Search', 'Todo', 'Ask', 'Plan', 'Skill'])
  const edits = ['Write', 'Append', 'Edit', 'Delete', 'Move']
  t.same(names('acceptEdits'), ['Read', 'List', 'Search', ...edits, 'Todo', 'Ask', 'Plan', 'Skill'])
  t.end()
})

t.test('a turn that may use subagents starts and joins them without permission', t => {
  for (const name of ['Delegate', 'Join', 'Need', 'Withdraw', 'Propose', 'Handover', 'Connect']) {
    for (const mode of ['default', 'acceptEdits', 'plan', 'bypassPermissions'] as const)
      t.equal(decide(call('other', { name }), state(mode)).verdict, 'go')
    t.equal(decide(call('other', { name }), state('default', { allowedTools: ['Read'] })).verdict, 'refuse')
  }
  t.end()
})

t.test('a tool that is always allowed runs without a card, except in plan mode', async t => {
  const remembered = new Set(['Tool'])
  t.equal(decide(call('execute'), state('default', { remembered })).verdict, 'go')
  t.equal(decide(call('execute', { name: 'Other' }), state('default', { remembered })).verdict, 'ask')
  t.equal(decide(call('edit'), state('plan', { remembered })).verdict, 'refuse')
  t.equal(decide(call('execute'), state('default', { remembered, allowedTools: ['Read'] })).verdict, 'refuse')
})

t.test('in an unattended turn a call that needs permission is refused with the reason', async t => {
  t.match(decide(call('execute'), state('default', { attended: false })), {
    verdict: 'refuse',
    reason: /nobody watches/,
  })
  t.equal(decide(call('read'), state('default', { attended: false })).verdict, 'go')
})

t.test('the card shows the whole command or path, and what is too long to be shown is refused', async t => {
  t.match(decide(call('execute', { name: 'Shell', command: 'rm -r x' }), state('default')), {
    card: {
      kind: 'permission',
      toolName: 'Shell',
      title: 'Run a command',
      description: 'rm -r x',
      reason: /mode default/,
      alwaysLabel: /Shell/,
    },
  })
  t.match(decide(call('edit', { name: 'Write', path: 'a.txt' }), state('default')), {
    card: { title: 'Write a.txt', path: 'a.txt' },
  })
  const longest = 'x'.repeat(256 * 1024)
  const shown = decide(call('execute', { command: longest }), state('default'))
  t.ok(shown.verdict === 'ask' && shown.card.description === longest)
  t.match(decide(call('execute', { command: `${longest}x` }), state('default')), {
    verdict: 'refuse',
    reason: /too long to be shown: expected at most 262144 characters, found 262145$/,
  })
})

t.test('plan mode runs only commands that are known to be read-only', async t => {
  t.equal(decide(call('execute', { command: 'git status' }), state('plan')).verdict, 'go')
  const input = call('execute', { name: 'Process', command: 'git status' })
  t.equal(decide(input, state('plan')).verdict, 'refuse', 'what a program makes of its input is not known')
  t.match(decide(call('execute', { command: 'npm test' }), state('plan')), { verdict: 'refuse', reason: /plan mode/ })
})

t.test('read-only commands are distinguished from all others', async t => {
  const reads = [
    'ls',
    'ls -la src',
    'cat "a b.txt"',
    "grep -rn 'two words' src",
    'git log --oneline -5',
    'git diff HEAD~1'.replace('~1', ''),
    'git show HEAD:a.txt',
    "find . -name '*.ts'",
    'rg --glob=*.ts x'.replace('=*', '=a'),
    'wc -l *.ts',
    '  pwd  ',
    'git log --format=oneline',
  ]
  const more = [
    '',
    ' ',
    'rm x',
    'ls; rm x',
    'ls && rm x',
    'ls | sh',
    'ls > x',
    'ls `rm x`',
    'ls $(rm x)',
    'ls "$(rm x)"',
    'ls\nrm x',
    'ls & rm x',
    'A=b ls',
    'env ls',
    'sh -c ls',
    './ls',
    '/bin/ls',
    '\\ls',
    'l* x',
    'git',
    'git commit',
    'git -c core.pager=x log',
    'git log --output=x',
    "git log --out'p'ut=x",
    'git diff --ext-diff',
    'git branch x',
    'git diff *',
    'git stash',
    'find . -delete',
    'find . -exec rm {} +',
    "find . '-delete'",
    'find *',
    'find . -fprint x',
    'rg --pre sh x',
    'rg -z x',
    'sort -o x y',
    'tee x',
    "ls 'unclosed",
    'ls ~root',
    'cat <(rm x)',
    'constructor',
    '__proto__ x',
    'ls\0',
    `ls ${'a'.repeat(3000)}`,
  ]
  for (const command of reads) t.ok(isReadOnly(command), command)
  for (const command of more) t.notOk(isReadOnly(command), JSON.stringify(command))
})

t.test('the powers of a persona are checked before the mode, and a call of unknown kind needs all of them', t => {
  const powers = { files: 'read', shell: true, code: true, web: false, delegate: true } as const
  const verdict = (category: ToolCategory, name = 'Tool') =>
    decide(call(category, { name }), state('bypassPermissions', { powers })).verdict
  for (const category of ['read', 'search', 'execute', 'think'] as const) t.equal(verdict(category), 'go', category)
  for (const category of ['edit', 'delete', 'move', 'fetch', 'other'] as const)
    t.equal(verdict(category), 'refuse', category)
  t.equal(verdict('other', 'Delegate'), 'go', "the powers for the sandbox's own tools are known")
  t.equal(verdict('read', 'Write'), 'refuse')
  t.end()
})

t.test('every tool of the sandbox has its powers', t => {
  t.same([...POWERED_TOOLS].sort(), Object.keys(tools).sort())
  t.end()
})
