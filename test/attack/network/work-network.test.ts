import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { show } from '../../plugins/ports/support.js'
import { walled } from '../support.js'
import { USERS } from '../users.js'
import { machineService } from './machine-service.js'
import { daemonOf } from './user-daemon.js'

const PAGE = 'the page of a panel'
/** Asks a service of the machine and the daemon in every way, notes what answered, and goes on. */
const ASKS = `
const { execFileSync } = require('node:child_process'), fs = require('node:fs')
const [what, ...targets] = process.argv.slice(2)
const got = []
for (const target of targets)
  for (const way of [['--noproxy', '*'], [], ['-x', 'socks5h://127.0.0.1:18999', '--noproxy', ''], ['-p']])
    try {
      const text = execFileSync('curl', ['-sS', '-m', '4', ...way, 'http://' + target + '/' + what], { stdio: 'pipe' })
      got.push(target + ' ' + String(text).slice(0, 60))
    } catch {}
fs.writeFileSync(what + '.out', JSON.stringify(got))
`
const SERVES = `require('http').createServer((_, a) => a.end('${PAGE}')).listen(Number(process.env.PORT), '127.0.0.1')`

const until = async (holds: () => boolean | Promise<boolean>): Promise<boolean> => {
  for (const end = performance.now() + 60_000; performance.now() < end;) {
    if (await holds()) return true
    await new Promise(resolve => setTimeout(resolve, 200))
  }
  return holds()
}

for (const [user, uid] of USERS)
  t.test(
    `${user}: what somebody below maintainer starts or could have written leaves the machine's network`,
    walled(),
    async t => {
      const { seen, port } = await machineService(t)
      const daemon = await daemonOf(t, uid, { 'README.md': '# work\n' })
      const { client, url, workspace } = daemon
      const asks = (what: string) =>
        `"${process.execPath}" .asks.cjs ${what} 127.0.0.1:${port} localhost:${port} ${new URL(url).host} `
        + '169.254.169.254'
      const scripts = {
        test: asks('test'),
        postinstall: asks('install'),
        dev: `${asks('dev')}; "${process.execPath}" .serves.cjs`,
      }
      const write = async (files: { readonly [path: string]: string }) => {
        for (const [path, content] of Object.entries(files)) await client.call('PUT /workspace/file', { path, content })
      }
      const result = (what: string): string[] | undefined => {
        const path = join(workspace, `${what}.out`)
        return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as string[]) : undefined
      }
      await write({
        '.asks.cjs': ASKS,
        '.serves.cjs': SERVES,
        'package.json': JSON.stringify({ name: 'p', version: '1.0.0', scripts: { ...scripts, test: asks('before') } }),
      })
      await client.call('POST /workspace/repos/{repo}/tests', { repo: 'root', session: 'tests', dirs: [''] })
      t.ok(await until(() => result('before') !== undefined), 'the tests ran')
      t.ok(seen.includes('/before'), 'with maintainers alone a test has the network of the machine')
      seen.length = 0

      const { token } = await client.call('POST /system/control/tokens', { label: 'drives', scope: 'drive' })
      const drive = (path: string, body: object) =>
        fetch(url + path, {
          method: 'POST',
          headers: { 'x-sandbox-control': token, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
      const hook = `#!/bin/sh\n${asks('hook')}\nexit 0\n`
      await write({
        'package.json': JSON.stringify({ name: 'p', version: '1.0.0', scripts, dependencies: { q: 'file:./q' } }),
        'q/package.json': JSON.stringify({ name: 'q', version: '1.0.0' }),
        'hook.b64': Buffer.from(hook).toString('base64'),
      })
      const prompt = 'run mkdir -p .husky && base64 -d hook.b64 > .husky/pre-commit && chmod +x .husky/pre-commit'
      t.equal((await drive('/agent', { conversationId: 'c', prompt })).status, 200)
      t.ok(await until(() => existsSync(join(workspace, '.husky/pre-commit'))), 'a turn of the token wrote a hook')

      const tests = await drive('/workspace/repos/root/tests', { session: 'more', dirs: [''] })
      t.equal(tests.status, 200)
      t.ok(await until(() => result('test') !== undefined), 'the tests ran')
      t.equal((await drive('/workspace/setup/install', { dirs: [''] })).status, 200)
      t.ok(await until(() => result('install') !== undefined), 'the install ran')

      execFileSync('git', ['-C', workspace, 'config', 'core.hooksPath', '.husky'], {
        ...(uid !== process.getuid?.() && { uid, gid: uid }),
        env: { PATH: process.env.PATH, HOME: workspace },
      })
      await client.call('POST /git/{repo}/commit', { repo: 'root', message: 'all', all: true })
      t.ok(await until(() => result('hook') !== undefined), 'the hook ran')
      await client.call('POST /panels/{repo}/start', { repo: 'root' })
      t.ok(await until(() => result('dev') !== undefined), 'the panel ran')

      t.strictSame(seen, [], 'the service of the machine saw nothing')
      for (const what of ['test', 'install', 'hook', 'dev'])
        t.strictSame(
          result(what)?.filter(text => !/is not reached from this conversation/.test(text)),
          [],
          `${what}: nothing answered but the proxy`,
        )
      const panel = await client.call('GET /panels/{repo}', { repo: 'root', wait: 'healthy' })
      t.ok(panel.healthy, 'the panel is healthy')
      t.equal((await show(panel.previewUrl!)).text, PAGE, 'and shown at its address')
      await client.call('POST /panels/{repo}/stop', { repo: 'root' })

      await client.call('POST /settings/patch', { set: { networkAllow: [`localhost:${port}`] } })
      await client.call('PUT /workspace/file', {
        path: 'package.json',
        content: JSON.stringify({ name: 'p', version: '1.0.0', scripts: { test: asks('allowed') } }),
      })
      await drive('/workspace/repos/root/tests', { session: 'last', dirs: [''] })
      t.ok(await until(() => result('allowed') !== undefined), 'the tests ran')
      t.ok(seen.includes('/allowed'), 'what a maintainer allows is reached')
    },
  )
