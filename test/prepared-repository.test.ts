import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { folderOf, inGit, makeWorkspace } from './support/daemon.js'

const FILES = { 'a.md': 'one\n', 'deep/b ü.md': 'two\n', '.gitignore': '*.log\n', 'out.log': 'seen\n' }

t.test('a copied repository is whole, and git takes none of its files for a changed one', async t => {
  for (const files of [FILES, {}]) {
    const [first, second] = [folderOf(t), folderOf(t)]
    for (const folder of [first, second]) {
      makeWorkspace(folder, files)
      inGit(folder, 'diff-files', '--exit-code')
      t.equal(inGit(folder, 'status', '--porcelain'), '')
      t.equal(inGit(folder, 'fsck', '--strict'), '')
    }
    for (const [path, text] of Object.entries(files)) t.equal(readFileSync(join(second, path), 'utf8'), text)
    writeFileSync(join(second, 'a.md'), 'won\n')
    t.match(inGit(second, 'status', '--porcelain'), /a\.md/)
    t.equal(inGit(first, 'status', '--porcelain'), '', 'copies share nothing')
  }
})

t.test('a folder that holds files already becomes a repository with them', async t => {
  const folder = folderOf(t)
  writeFileSync(join(folder, 'before.md'), 'here\n')
  makeWorkspace(folder, FILES)
  t.equal(inGit(folder, 'ls-files'), '.gitignore\na.md\nbefore.md\n"deep/b \\303\\274.md"\n')
})
