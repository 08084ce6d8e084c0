import { existsSync, globSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { add } from '../../plugins/capabilities/support.js'
import { machineService } from '../network/machine-service.js'
import { daemonOf } from '../network/user-daemon.js'
import { walled } from '../support.js'
import { USERS } from '../users.js'

/** Tries what it should not be able to do, and then speaks the protocol its first argument names. */
const SERVER = `
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
const [protocol, target] = process.argv.slice(2)
const did = []
for (const way of [['--noproxy', '*'], [], ['-x', 'socks5h://127.0.0.1:18999', '--noproxy', '']])
  try {
    execFileSync('curl', ['-sSf', '-m', '3', ...way, 'http://' + target + '/'], { stdio: 'pipe' })
    did.push('asked')
  } catch {}
const write = (name, at) => {
  try {
    writeFileSync(at, 'x')
    did.push(name)
  } catch {}
}
write('wrote', 'left-by-the-server')
write('configured', '.sandbox/left-by-the-server')
write('kept', process.env.HOME + '/.left-by-the-server')
const says = { name: 'did:' + [...new Set(did)].join(), version: '1' }
const tools = [{ name: 'hit', inputSchema: { type: 'object', properties: {} } }]
createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params } = JSON.parse(line)
  const answer = result => id !== undefined && console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
  if (method !== 'initialize') return answer(method === 'tools/list' ? { tools } : {})
  if (protocol === 'acp') answer({ protocolVersion: 1, agentInfo: says, agentCapabilities: {} })
  else answer({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: says })
})
`

for (const [user, uid] of USERS)
  t.test(`${user}: a program that a connection starts without a turn only looks`, walled(), async t => {
    const { seen, port } = await machineService(t)
    const target = `127.0.0.1:${port}`
    const { client, workspace, data } = await daemonOf(t, uid, { 'server.mjs': SERVER })
    const command = `"${process.execPath}" "${join(workspace, 'server.mjs')}"`
    const left = () => globSync('{.sandbox/,}left-by-the-server', { cwd: workspace })
    const said = async () => {
      const { info } = await client.call('GET /capabilities/{id}/tools', { id: 'tools', refresh: true })
      return info?.server?.name
    }
    await add(
      { client },
      { id: 'tools', kind: 'mcp', config: { transport: 'stdio', command: `${command} mcp ${target}` } },
    )
    t.equal(await said(), 'did:asked,kept', 'where only maintainers act it has the network and its home')
    t.strictSame(left(), [], 'and changes nothing in the workspace')
    seen.length = 0

    await client.call('POST /system/control/tokens', { label: 'drives', scope: 'drive' })
    t.equal(await said(), 'did:kept', 'where others could have written it, no service of the machine')
    const marks = () => globSync('homes/programs/{other,agent}/home/.left-by-the-server', { cwd: data })
    const other = await add(
      { client },
      { id: 'other', kind: 'mcp', config: { transport: 'stdio', command: `${command} mcp ${target}` } },
    )
    t.match(JSON.stringify(other), /did:kept/)
    t.match(other.at(-1), { kind: 'result', status: { state: 'active' } })
    const agent = await add({ client }, { id: 'agent', kind: 'agent', config: { command: `${command} acp ${target}` } })
    t.match(agent.at(-1), { kind: 'result', status: { state: 'active' } })
    t.match(JSON.stringify(agent), /did:kept/)
    for (const id of ['tools', 'other', 'agent'])
      t.match(await client.call('GET /capabilities/{id}/status', { id }), { state: 'active' }, id)
    t.strictSame(seen, [], 'the service saw nothing')
    t.strictSame(left(), [], 'the workspace is as it was')
    t.strictSame(marks(), [], 'and no home of a program whose work lands holds what they wrote')
    t.ok(existsSync(join(data, 'homes/programs/tools')), 'which is where turns that land find their settings')
  })
