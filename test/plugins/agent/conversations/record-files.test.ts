import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ATTACHMENTS } from '../../../../plugins/agent/conversations/attachments.js'
import { RecordFiles, type RecordFilesDeps } from '../../../../plugins/agent/conversations/record-files.js'
import { Transcripts } from '../../../../plugins/agent/conversations/transcripts.js'
import { folderOf } from '../../../support/daemon.js'
import { journalsIn } from '../../../support/journals.js'

const WEEK_MS = 7 * 86_400_000

t.test('uploaded files that no message has go after a week', async t => {
  const workspace = folderOf(t)
  const upload = (name: string): string => {
    const path = `${ATTACHMENTS}/${name}/report.md`
    mkdirSync(join(workspace, ATTACHMENTS, name), { recursive: true })
    writeFileSync(join(workspace, path), name)
    return path
  }
  const transcripts = new Transcripts(journalsIn(t))
  const [sent, waiting, unsent] = [upload('sent'), upload('waiting'), upload('unsent')]
  await transcripts.add('one', 'r-1', [{ role: 'user', text: 'x', attachments: [sent] }])
  const files = new RecordFiles({
    workspace,
    conversations: { recorded: [{ id: 'one' }] },
    transcripts,
    queue: { waiting: () => [{ input: { attachments: [waiting] } }], resumable: () => undefined },
    engine: { live: () => undefined },
  } as unknown as RecordFilesDeps)
  const left = () => [sent, waiting, unsent].filter(path => existsSync(join(workspace, path)))

  await files.sweep()
  t.same(left(), [sent, waiting, unsent], 'a file of today stays')
  const later = Date.now() + WEEK_MS + 60_000
  await files.sweep(later)
  t.same(left(), [sent, waiting])
  t.notOk(existsSync(join(workspace, ATTACHMENTS, 'unsent')), 'with its folder')
  await files.sweep(later)
  t.same(left(), [sent, waiting], 'again: nothing happens')
})

t.test('a sandbox without uploads has nothing to remove', async t => {
  const files = new RecordFiles({ workspace: folderOf(t) } as RecordFilesDeps)
  await t.resolves(files.sweep())
})
