import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { refusalOf } from '../../kernel/auth/memory.js'
import { inner, openVaultOf, secretsWith } from './support.js'

t.test('a running process reads each new value in its folder, without another start', async t => {
  const { daemon } = await secretsWith(t)
  const { client } = daemon
  t.match(await refusalOf(() => inner(daemon, 'secrets.mount', { process: 'p', names: ['../x'] })), {
    reason: 'invalid',
  })
  await openVaultOf(daemon)
  await client.call('POST /secrets', { key: 'TOKEN', value: 'first' })
  await client.call('POST /secrets', { key: 'BOUND', value: 'bound', hosts: ['api.example.org'] })
  await inner(daemon, 'secrets.put', { name: 'chat/token', value: 'of the chat' })
  const names = ['TOKEN', 'LATER', 'BOUND', 'chat/token']
  const { folder } = await inner(daemon, 'secrets.mount', { process: 'ext/a:worker', names })
  t.equal(statSync(folder).mode & 0o777, 0o700)
  t.equal(statSync(join(folder, 'TOKEN')).mode & 0o777, 0o600)
  t.same(readdirSync(folder).sort(), ['TOKEN', 'chat'], 'what is bound to hosts is no file')
  t.equal(readFileSync(join(folder, 'chat/token'), 'utf8'), 'of the chat')

  const child = spawn(
    process.execPath,
    [
      '-e',
      `process.stdin.on('data', () => {
      process.stdout.write(require('fs').readFileSync(process.env.SANDBOX_SECRETS_DIR + '/TOKEN', 'utf8'))
    })`,
    ],
    { env: { SANDBOX_SECRETS_DIR: folder }, stdio: 'pipe' },
  )
  t.teardown(() => child.kill())
  const read = async (): Promise<string> => {
    child.stdin.write('?')
    const [piece] = (await once(child.stdout, 'data')) as [Buffer]
    return piece.toString()
  }
  t.equal(await read(), 'first')
  const { pid } = child
  await client.call('POST /secrets', { key: 'TOKEN', value: 'second' })
  t.equal(await read(), 'second')
  t.equal(child.pid, pid)
  await client.call('POST /secrets', { key: 'LATER', value: 'later' })
  t.equal(readFileSync(join(folder, 'LATER'), 'utf8'), 'later')
  await client.call('DELETE /secrets/{key}', { key: 'TOKEN' })
  await client.call('POST /secrets', { key: 'LATER', value: '__vaulted__', hosts: ['api.example.org'] })
  t.same(readdirSync(folder), ['chat'])
  await inner(daemon, 'secrets.unmount', { process: 'ext/a:worker' })
  t.notOk(existsSync(folder))
})

t.test('what a killed daemon left in memory is gone after the next start', async t => {
  const { daemon } = await secretsWith(t)
  await openVaultOf(daemon)
  await daemon.client.call('POST /secrets', { key: 'TOKEN', value: 'first' })
  const { folder } = await inner(daemon, 'secrets.mount', { process: 'p', names: ['TOKEN'] })
  await daemon.stop()
  t.notOk(existsSync(folder), 'a daemon that stops removes it')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'TOKEN'), 'left')
  await secretsWith(t, { workspace: daemon.workspace, data: daemon.data })
  t.notOk(existsSync(dirname(folder)))
})
