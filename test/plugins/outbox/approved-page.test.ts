import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { ApprovalInput } from '../../../plugins/approvals/contract.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { itemIn } from '../approvals/support.js'
import { askPage, pathOfUrl } from './support.js'

t.test('a proposed page is published as it was shown, after a yes', async t => {
  const daemon = await daemonWith(t, ['outbox', 'approvals', 'agent', 'agents', 'settings', 'activity'], {
    files: {
      'chart.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
      'secret.pem': 'x',
      'site/index.html': '<h1>Home</h1>',
      'site/in/deep.txt': 'deep',
      'site/.env': 'A=1',
    },
  })
  const { client, workspace, url } = daemon
  const propose = (post: Partial<ApprovalInput['post'] & object>) =>
    client.call('POST /approvals', { kind: 'post', post: { platform: 'outbox', content: '<h1>Report</h1>', ...post } })
  const approve = async ({ id, digest }: { id: string; digest: string }, status: 'done' | 'failed') => {
    await client.call('POST /approvals/{id}/approve', { id, digest, now: true })
    return itemIn(client, id, status)
  }
  const listed = async () => (await client.call('GET /public', {})).files

  await t.test('the page and its files are those that were filed', async t => {
    const item = await propose({ target: 'report', media: ['chart.svg'] })
    writeFileSync(join(workspace, 'chart.svg'), 'changed')
    t.same(await listed(), [])
    const done = await approve(item, 'done')
    t.match(done, { result: 'published as report, 2 files', url: /\/report\/$/ })
    t.equal((await askPage(url, pathOfUrl(done.url))).body.toString(), '<h1>Report</h1>')
    t.match((await askPage(url, `${pathOfUrl(done.url)}chart.svg`)).body.toString(), /^<svg/)
    t.match(await listed(), exactly({ path: 'report/chart.svg', publishedBy: 'owner@sandbox.local' }, {}))
  })

  await t.test('words become a page that shows them', async t => {
    const done = await approve(await propose({ title: 'A <b> title', content: 'one < two\nthree' }), 'done')
    const page = (await askPage(url, pathOfUrl(done.url))).body.toString()
    t.match(page, 'one &#60; two\nthree')
    t.match(page, '<title>A &#60;b&#62; title</title>')
  })

  await t.test('a file or folder is published as it was when that was proposed', async t => {
    const act = (args: object) =>
      client.call('POST /approvals', {
        kind: 'action',
        action: { key: 'outbox.publish', summary: 'Publish the site', args: { ...args } },
      })
    for (const [args, status] of [
      [{}, 400],
      [{ path: 'site', as: 'a/b' }, 400],
      [{ path: 'site', other: 1 }, 400],
      [{ path: 'site', expiresAt: 'soon' }, 400],
      [{ path: '../x' }, 400],
      [{ path: '.' }, 400],
      [{ path: 'public/x' }, 400],
      [{ path: 'nothing' }, 422],
    ] as const)
      t.equal((await refusalOf(() => act(args))).status, status, JSON.stringify(args))
    const item = await act({ path: 'site', as: 'home' })
    t.equal(item.via, 'executor')
    writeFileSync(join(workspace, 'site/index.html'), 'changed')
    t.not((await act({ path: 'site', as: 'home' })).digest, item.digest)
    const done = await approve(item, 'done')
    t.match(done, { result: 'published as home, 2 files', url: /\/home\/$/ })
    t.equal((await askPage(url, pathOfUrl(done.url))).body.toString(), '<h1>Home</h1>')
    t.equal((await askPage(url, `${pathOfUrl(done.url)}in/deep.txt`)).body.toString(), 'deep')
    const one = await approve(await act({ path: 'site/in/deep.txt' }), 'done')
    t.equal((await askPage(url, pathOfUrl(one.url))).body.toString(), 'deep')
    const key = await approve(await act({ path: 'secret.pem', as: 'innocent' }), 'failed')
    t.match(key.attempts, exactly({ error: /credential-name/ }))
    for (const path of ['home', 'deep.txt']) await client.call('POST /public/unpublish', { path })
  })

  await t.test('what no guard lets out is said, and a name that none can have', async t => {
    t.match(await propose({ target: '../up' }), { via: 'nobody', problem: /needs a name/ })
    const failed = await approve(await propose({ content: '-----BEGIN RSA PRIVATE KEY-----' }), 'failed')
    t.match(failed.attempts, exactly({ error: /blocked/ }))
    t.equal((await listed()).length, 3)
  })
})
