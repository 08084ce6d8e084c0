import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { textBelow } from '../../../../sdk/node/files/real-folders.js'

t.test('a text below a folder is read by its path, and never through a link', async t => {
  const root = t.testdir({ inner: { deep: { 'a.md': 'deep' }, 'a.md': 'inner' }, 'a.md': 'root' })
  symlinkSync('inner', join(root, 'link'))
  symlinkSync('a.md', join(root, 'inner/b.md'))
  for (const [path, text] of [
    ['a.md', 'root'],
    ['inner/a.md', 'inner'],
    ['inner/deep/a.md', 'deep'],
    ['link/a.md', undefined],
    ['link/deep/a.md', undefined],
    ['inner/b.md', undefined],
    ['inner', undefined],
    ['none/a.md', undefined],
  ] as const)
    t.equal(await textBelow(root, path, 100), text, path)
  t.equal(await textBelow(root, 'a.md', 3), undefined, 'larger than that')
  t.equal(await textBelow(join(root, 'none'), 'a.md', 100), undefined)
})
