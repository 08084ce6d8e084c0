import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { walled } from '../../attack/support.js'
import { daemonWith, inGit } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { textDocument } from '../../support/documents/office.js'
import { runTurn } from '../../support/turns.js'
import { commitAll } from '../git/support.js'

t.test(
  'what a conversation changed is compared from its copy, and from its branch once archived',
  walled(),
  async t => {
    const daemon = await daemonWith(t, [])
    const { client, workspace } = daemon
    writeFileSync(join(workspace, 'offer.docx'), await textDocument(['ten days']))
    writeFileSync(join(workspace, 'next.docx'), await textDocument(['nine days']))
    commitAll(workspace, 'documents')
    const run = (prompt: string) => runTurn(client, 'c-1', prompt, { isolated: true })
    await run('run cp next.docx offer.docx && rm next.docx && echo text > notes.md')
    const source = { source: 'agent', repo: 'root', agent: 'c-1' } as const
    const compared = () => client.call('GET /diff/rendered', { ...source, path: 'offer.docx' })
    const listed = async () => (await client.call('GET /diff/documents', source)).documents
    const rows = exactly(
      { path: 'next.docx', kind: 'document', before: true, after: false },
      { path: 'offer.docx', kind: 'document', before: true, after: true },
    )

    await t.test('its copy', async t => {
      t.match(await compared(), { before: { markdown: 'ten days' }, after: { markdown: 'nine days' } })
      t.match(await listed(), rows)
      t.match(await client.call('GET /diff/rendered', { ...source, path: 'next.docx' }), { same: false })
    })

    await t.test('its branch, once it is archived', async t => {
      await client.call('POST /agents/archive', { ids: ['c-1'] })
      t.match(await compared(), { before: { markdown: 'ten days' }, after: { markdown: 'nine days' } })
      t.match(await listed(), rows)
      const raw = await daemon.fetch('/diff/raw?source=agent&repo=root&agent=c-1&path=offer.docx&which=after')
      t.ok(Buffer.from(await raw.arrayBuffer()).equals(await textDocument(['nine days'])))
    })

    await t.test(
      'unknown conversations, repositories and paths are refused, and so is a branch that is gone',
      async t => {
        for (const [more, status] of [
          [{ agent: 'c-9' }, 404],
          [{ repo: 'elsewhere' }, 404],
          [{ path: 'none.docx' }, 404],
          [{ path: '.git/config' }, 404],
          [{ path: '../x' }, 400],
        ] as const) {
          const asked = { ...source, path: 'offer.docx', ...more }
          t.match(await refusalOf(() => client.call('GET /diff/rendered', asked)), { status }, JSON.stringify(more))
        }
        await runTurn(client, 'c-2', 'say here')
        const shared = { ...source, agent: 'c-2' }
        t.match(await refusalOf(() => client.call('GET /diff/documents', shared)), { status: 422 })
        inGit(workspace, 'for-each-ref', '--format=%(refname)', 'refs/heads/agent', 'refs/sandbox')
          .split('\n')
          .filter(Boolean)
          .forEach(ref => inGit(workspace, 'update-ref', '-d', ref))
        t.match(await refusalOf(compared), { status: 409, message: /branch/ })
      },
    )
  },
)
