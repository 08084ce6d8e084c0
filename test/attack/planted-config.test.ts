import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Rule } from '../../plugins/settings/contract.js'
import type { Client } from '../../sdk/client.js'
import { commitAll, put } from '../plugins/git/support.js'
import { automation } from '../support/automations.js'
import { folderOf, inGit, makeWorkspace, spawnDaemon } from '../support/daemon.js'
import { exactly } from '../support/lists.js'
import { runTurn } from '../support/turns.js'
import { walled } from './support.js'

/** Files that run a program in every way that a file of the workspace can; each leaves a file `ran-<how>-<when>`. */
const planted = (workspace: string, when: string): { readonly [path: string]: string } => {
  const touch = (how: string) => `touch ${join(workspace, `ran-${how}-${when}`)}`
  const fires = (trigger: object, how: string) => ({ trigger, guard: touch(how), prompt: 'x', enabled: true })
  return {
    '.sandbox/config/automations.json': JSON.stringify({
      [`timed-${when}`]: fires({ kind: 'schedule', cron: '* * * * * *' }, 'timed'),
      [`hooked-${when}`]: fires({ kind: 'event' }, 'hooked'),
    }),
    '.sandbox/config/capabilities.json': JSON.stringify({
      [`server-${when}`]: { kind: 'mcp', config: { transport: 'stdio', command: touch('server'), approve: 'never' } },
      [`agent-${when}`]: { kind: 'agent', config: { command: touch('agent'), env: 'A=1' } },
    }),
    '.sandbox/config/settings.json': JSON.stringify({
      network: 'shared',
      networkAllow: ['localhost:5432'],
      admission: { schedule: 'allow', event: 'allow' },
      rules: [ruleOf(when, touch('rule'))],
    }),
    [`.sandbox/config/workspace-extensions/evil-${when}/intentic-extension.json`]: JSON.stringify({
      publisher: 'evil',
      name: when,
      contributes: { processes: [{ name: 'p', command: touch('process'), autoStart: true }] },
    }),
  }
}

const ruleOf = (when: string, command: string): Rule => ({
  ...{ id: `rule-${when}`, label: 'Planted', moment: 'turn.ending', action: { kind: 'command', command } },
})

/** A tool server, which writes nothing. */
const SERVER = `
import { createInterface } from 'node:readline'
const serverInfo = { name: 's', version: '1' }
createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params } = JSON.parse(line)
  const results = {
    initialize: { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo },
    'tools/list': { tools: [{ name: 'ran', inputSchema: { type: 'object', properties: {} } }] },
  }
  const result = results[method] ?? {}
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
})
`

const HOW = ['timed', 'hooked', 'server', 'agent', 'process', 'rule']

/** Everything that people and turns do which could start one of them. */
const use = async (client: Client, when: string): Promise<void> => {
  await client.call('GET /capabilities')
  for (const id of [`server-${when}`, `agent-${when}`]) await client.call('GET /capabilities/{id}/status', { id })
  await client.call('GET /automations')
  for (const id of [`timed-${when}`, `hooked-${when}`])
    await client.call('POST /automations/{id}/run', { id }).catch(() => undefined)
  await runTurn(client, `c-${when}`, 'say hi')
  await runTurn(client, `s-${when}`, 'say hi', { agent: 'script' })
}

t.test(
  'a repository whose settings run programs starts none, opened or pulled, until they are saved',
  walled(),
  async t => {
    const folder = folderOf(t)
    const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
    makeWorkspace(workspace, planted(workspace, 'first'))
    const daemon = await spawnDaemon(t, { workspace, data })
    const { client } = daemon
    const ran = (when: string) => HOW.filter(how => existsSync(join(workspace, `ran-${how}-${when}`)))
    const unaccepted = async () => {
      const files = await client.call('GET /system/manifest-problems')
      return files
        .filter(({ problems }) => problems.some(({ kind }) => kind === 'unaccepted'))
        .map(({ path }) => path.replace('.sandbox/config/', ''))
        .sort()
    }
    const FILES = ['automations.json', 'capabilities.json', 'settings.json']
    await use(client, 'first')
    t.same(ran('first'), [])
    t.same(await unaccepted(), FILES)
    t.match((await client.call('GET /extensions')).pending, exactly({ id: 'evil.first' }))

    const theirs = join(folder, 'theirs')
    inGit(folder, 'clone', '-q', workspace, theirs)
    put(theirs, planted(workspace, 'pulled'))
    commitAll(theirs, 'more')
    inGit(workspace, 'pull', '-q', theirs, 'main')
    await use(client, 'pulled')
    t.same([...ran('first'), ...ran('pulled')], [])
    t.same(await unaccepted(), FILES)
    t.match(await client.call('GET /settings'), { network: 'own', networkAllow: { length: 0 } })

    put(workspace, { 'server.mjs': SERVER })
    const id = 'server-pulled'
    const server = { transport: 'stdio', command: `"${process.execPath}" "${join(workspace, 'server.mjs')}"` } as const
    for await (const _ of await client.call('POST /capabilities', { id, kind: 'mcp', config: server }));
    t.match(JSON.stringify(await client.call('GET /capabilities/{id}/tools', { id })), /"ran"/)
    const guard = `touch ${join(workspace, 'ran-hooked-pulled')}`
    await client.call('POST /automations', automation('hooked-pulled', { trigger: { kind: 'event' }, guard }))
    await client.call('POST /automations/{id}/run', { id: 'hooked-pulled' })
    const rules = [ruleOf('pulled', `touch ${join(workspace, 'ran-rule-pulled')}`)]
    await client.call('POST /settings/patch', { set: { rules } })
    await runTurn(client, 'c-saved', 'say hi', { agent: 'script' })
    t.same(ran('pulled'), ['hooked', 'rule'], 'what a maintainer saves runs')
  },
)
