import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Copies } from '../../../../plugins/agent/copies/copies.js'
import { landRepo } from '../../../../plugins/agents/landing/landing.js'
import { LandingRecords } from '../../../../plugins/agents/landing/record.js'
import { treeOfCopy } from '../../../../plugins/agents/work/copy-tree.js'
import { Refs } from '../../../../plugins/agents/work/git-folders.js'
import { lookAt } from '../../../../plugins/agents/work/repository.js'
import { ScratchRepos } from '../../../../plugins/agents/work/scratch-repos.js'
import { KeyedMutex } from '../../../../sdk/node/concurrency/keyed-mutex.js'
import { memoryFiles } from '../../agents/support.js'
import { bytesOf, commit, git, gitdirOf } from './copies-support.js'

/** A workspace with a private copy, and landing of its work as group agents does it. */
const world = async (t: Test, make: (workspace: string) => void) => {
  const top = realpathSync(t.testdir({ work: {}, data: { plugins: { agent: {}, agents: {} } } }))
  const [workspace, data] = [join(top, 'work'), join(top, 'data')]
  git(workspace, 'init', '-q', '-b', 'main')
  make(workspace)
  const copies = new Copies({ workspace, folder: join(data, 'plugins/agent'), data })
  t.teardown(() => copies.close())
  const { repos, branch, unfiltered } = await copies.open('c-1', [])
  const scratchRepos = new ScratchRepos(join(data, 'plugins/agents'), { workspace, data })
  const deps = {
    workspace,
    scratchRepos,
    refs: new Refs(),
    locks: new KeyedMutex(),
    records: new LandingRecords(memoryFiles()),
    now: Date.now,
  }
  const checkout = async () => (await copies.resolve('c-1', repos))[0]!
  return {
    workspace,
    data,
    copy: copies.dir('c-1'),
    unfiltered,
    commit: async () => (await copies.commitRest('c-1', repos))[0]!,
    /** The tree of the copy's files, as a diff of uncommitted work has it. */
    tree: async () => {
      const here = lookAt(deps.refs, await checkout(), branch)!
      return scratchRepos.with(here, async scratch => (await treeOfCopy(scratch, here, copies.dir('c-1'))).tree)
    },
    land: async () => {
      const { tip } = (await copies.commitRest('c-1', repos))[0]!
      return landRepo(deps, { conversation: 'c-1', branch, span: 'outstanding' }, await checkout(), tip)
    },
    /** The tree that the person's git makes of all files of a folder. */
    added: (folder: string) => {
      git(folder, 'add', '-A')
      return git(folder, 'write-tree')
    },
  }
}

const status = (folder: string) =>
  git(folder, 'status', '--porcelain', '-uall')
    .split('\n')
    .filter(line => line !== '' && !line.includes('.sandbox/'))
    .map(line => line.trim())
    .sort()

const utf8 = (text: string) => Buffer.from(text)
const utf16 = (text: string) => Buffer.from(text, 'utf16le')
const KINDS: { readonly [folder: string]: { readonly attributes: string; readonly encode?: typeof utf8 } } = {
  none: { attributes: '' },
  auto: { attributes: 'text=auto' },
  text: { attributes: 'text' },
  crlf: { attributes: 'text eol=crlf' },
  lf: { attributes: 'text eol=lf' },
  raw: { attributes: '-text' },
  wide: { attributes: 'text working-tree-encoding=UTF-16LE-BOM', encode: utf16 },
  ident: { attributes: 'ident' },
  filtered: { attributes: 'filter=up' },
}
const FORMS: { readonly [name: string]: string } = {
  lf: 'ONE\nTWO\nTHREE\n',
  crlf: 'ONE\r\nTWO\r\nTHREE\r\n',
  mixed: 'ONE\r\nTWO\nTHREE\r\n',
  open: 'ONE\nTWO',
  mark: '\uFEFFONE\r\nTWO\r\n',
  id: '$Id$\nTWO\n',
  gone: 'GONE\r\n',
  same: 'SAME\r\n',
}

const fill = (workspace: string) => {
  git(workspace, 'config', 'filter.up.clean', 'tr A-Z a-z')
  git(workspace, 'config', 'filter.up.smudge', 'tr a-z A-Z')
  git(workspace, 'config', 'filter.up.required', 'true')
  const lines = Object.entries(KINDS).map(([folder, { attributes }]) => `${folder}/** ${attributes}\n`)
  writeFileSync(join(workspace, '.gitattributes'), lines.join(''))
  for (const [folder, { encode = utf8 }] of Object.entries(KINDS)) {
    mkdirSync(join(workspace, folder))
    for (const [name, text] of Object.entries(FORMS)) {
      const mark = encode === utf16 && !text.startsWith('\uFEFF') ? '\uFEFF' : ''
      writeFileSync(join(workspace, folder, `${name}.txt`), encode(mark + text))
    }
  }
  writeFileSync(join(workspace, 'picture.bin'), Buffer.from([0, 13, 10, 255, 10, 13]))
  git(workspace, 'add', '-A')
  git(workspace, 'commit', '-qm', 'first')
  // The files are then as git writes them.
  for (const path of [...Object.keys(KINDS), '.gitattributes']) rmSync(join(workspace, path), { recursive: true })
  git(workspace, 'checkout', '-q', '--', '.')
}

const SETTINGS = ['', 'true', 'input'].flatMap(autocrlf => ['', 'crlf', 'lf'].map(eol => ({ autocrlf, eol })))

for (const { autocrlf, eol } of SETTINGS) {
  t.test(`files of every form land with autocrlf "${autocrlf}" and eol "${eol}"`, async t => {
    // Git itself judges: what it adds of the copy's files is the commit, and what it adds after the landing.
    const made = await world(t, workspace => {
      if (autocrlf) git(workspace, 'config', 'core.autocrlf', autocrlf)
      if (eol) git(workspace, 'config', 'core.eol', eol)
      fill(workspace)
    })
    const { workspace, copy } = made
    t.same(status(workspace), [], 'nothing changed before')
    t.same(bytesOf(copy), bytesOf(workspace), 'the copy has the files of the checkout')
    const before = bytesOf(workspace)
    const touched: string[] = []
    for (const [folder, { encode = utf8 }] of Object.entries(KINDS)) {
      for (const name of Object.keys(FORMS).filter(each => each !== 'same')) {
        const [path, file] = [`${folder}/${name}.txt`, join(copy, folder, `${name}.txt`)]
        touched.push(path)
        if (name === 'gone') rmSync(file)
        else appendFileSync(file, encode(readFileSync(file).includes(13) ? 'MORE\r\n' : 'MORE\n'))
      }
      writeFileSync(join(copy, folder, 'new.txt'), encode(`${encode === utf16 ? '\uFEFF' : ''}NEW\nLINES\n`))
      touched.push(`${folder}/new.txt`)
    }
    const seen = await made.tree()
    const { tip } = await made.commit()
    t.same(status(copy), [], 'the copy is clean after its commit')
    const tree = git(workspace, 'rev-parse', `${tip}^{tree}`)
    t.equal(seen, tree, 'the uncommitted work was shown as it was committed')
    const { conflict, outcome } = (await made.land())!
    t.same([conflict, outcome?.landedTip], [undefined, tip])
    const named = status(workspace).map(line => line.split(' ').at(-1)!)
    t.same(named.sort(), touched.sort(), 'git sees exactly the work')
    const after = bytesOf(workspace)
    for (const path of Object.keys(before)) if (!touched.includes(path)) t.equal(after[path], before[path], path)
    t.equal(made.added(workspace), tree, 'what the person adds is the work')
  })
}

t.test('settings and attributes of the person alone count as those of the repository', async t => {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'home-')))
  t.teardown(() => rmSync(home, { recursive: true }))
  const attributes = join(home, 'attributes')
  writeFileSync(attributes, '*.up filter=up\n')
  writeFileSync(
    join(home, '.gitconfig'),
    `[core]\n\tautocrlf = true\n\tattributesFile = ${attributes}\n`
      + '[filter "up"]\n\tclean = tr A-Z a-z\n\tsmudge = tr a-z A-Z\n',
  )
  const { HOME } = process.env
  process.env.HOME = home
  t.teardown(() => (process.env.HOME = HOME))
  const settings = ['-c', 'core.autocrlf=true', '-c', `core.attributesFile=${attributes}`]
  const filter = ['-c', 'filter.up.clean=tr A-Z a-z', '-c', 'filter.up.smudge=tr a-z A-Z']
  const person = (folder: string, ...args: string[]) => git(folder, ...settings, ...filter, ...args)
  const made = await world(t, workspace => {
    writeFileSync(join(workspace, 'a.txt'), 'one\r\ntwo\r\n')
    writeFileSync(join(workspace, 'h.up'), 'HELLO\r\n')
    person(workspace, 'add', '-A')
    person(workspace, 'commit', '-qm', 'first')
  })
  t.same(bytesOf(made.copy), bytesOf(made.workspace))
  for (const name of ['a.txt', 'h.up']) appendFileSync(join(made.copy, name), 'MORE\r\n')
  const { tip } = await made.commit()
  t.equal(git(made.workspace, 'show', `${tip}:h.up`), 'hello\nmore')
  t.notOk((await made.land())!.conflict)
  t.equal(readFileSync(join(made.workspace, 'h.up'), 'utf8'), 'HELLO\r\nMORE\r\n')
  t.equal(readFileSync(join(made.workspace, 'a.txt'), 'utf8'), 'one\r\ntwo\r\nMORE\r\n')
})

t.test('files that git keeps in another form than it would add are unchanged to a landing', async t => {
  const made = await world(t, workspace => {
    writeFileSync(join(workspace, 'a.txt'), 'one\r\ntwo\r\n')
    // Older than the index, so that git does not read it again.
    utimesSync(join(workspace, 'a.txt'), 1_700_000_000, 1_700_000_000)
    git(workspace, 'add', '-A')
    git(workspace, 'commit', '-qm', 'first')
    // From now on git would add them with other line ends.
    commit(workspace, { '.gitattributes': '*.txt text\n' }, 'second')
  })
  t.same(status(made.workspace), [])
  appendFileSync(join(made.copy, 'a.txt'), 'three\r\n')
  t.notOk((await made.land())!.conflict)
  t.same(status(made.workspace), ['M a.txt'])
})

t.test("a file that git is told not to compare is still the person's own", async t => {
  for (const mark of ['--assume-unchanged', '--skip-worktree']) {
    const made = await world(t, workspace => {
      commit(workspace, { 'a.txt': 'one\n' }, 'first')
      git(workspace, 'update-index', mark, 'a.txt')
      writeFileSync(join(workspace, 'a.txt'), 'mine\n')
    })
    writeFileSync(join(made.copy, 'a.txt'), 'work\n')
    t.same(
      (await made.land())!.conflict?.paths.map(({ path }) => path),
      ['a.txt'],
      mark,
    )
    t.equal(readFileSync(join(made.workspace, 'a.txt'), 'utf8'), 'mine\n', mark)
  }
})

for (const cone of [true, false]) {
  t.test(`a sparse checkout ${cone ? 'of a cone' : 'by patterns'} stays sparse`, async t => {
    const made = await world(t, workspace => {
      commit(workspace, { 'a.txt': 'a\n', 'in/x': '1\n', 'out/x': '2\n', 'out/deep/y': '3\n' }, 'first')
      git(workspace, 'sparse-checkout', 'set', ...(cone ? ['--cone', 'in'] : ['--no-cone', '/*', '!/out/']))
    })
    const names = () => [made.workspace, made.copy].map(folder => Object.keys(bytesOf(folder)).sort())
    t.same(names(), Array(2).fill(['a.txt', 'in/x']))
    appendFileSync(join(made.copy, 'in/x'), 'more\n')
    mkdirSync(join(made.copy, 'out'))
    writeFileSync(join(made.copy, 'out/x'), '22\n')
    writeFileSync(join(made.copy, 'out/new'), 'new\n')
    const seen = await made.tree()
    const { tip } = await made.commit()
    t.equal(seen, git(made.workspace, 'rev-parse', `${tip}^{tree}`))
    t.same(git(made.workspace, 'diff', '--name-status', 'main', tip).split('\n'), ['M\tin/x', 'A\tout/new', 'M\tout/x'])
    t.notOk((await made.land())!.conflict)
    t.same(status(made.workspace), ['?? out/new', 'M in/x', 'M out/x'])
    t.same(names()[0], ['a.txt', 'in/x', 'out/new', 'out/x'])
  })
}

t.test('modes of files do not count where the repository says so', async t => {
  const made = await world(t, workspace => {
    git(workspace, 'config', 'core.fileMode', 'false')
    commit(workspace, { 'a.txt': 'a\n', 'b.bin': '\0\n' }, 'first')
    for (const name of ['a.txt', 'b.bin']) chmodSync(join(workspace, name), 0o755)
  })
  for (const name of ['a.txt', 'b.bin']) writeFileSync(join(made.copy, name), '\0work\n')
  t.notOk((await made.land())!.conflict)
  t.same(status(made.workspace), ['M a.txt', 'M b.bin'])
  t.equal(statSync(join(made.workspace, 'b.bin')).mode & 0o777, 0o755, "the mode is the disk's own")
})

const isInstalled = (program: string) => {
  try {
    execFileSync(program, ['version'], { stdio: 'ignore' })
    return {}
  } catch {
    return { skip: `${program} is not installed` }
  }
}

/** The LFS objects of a git dir, by the hashes that name them. */
const largeFilesIn = (gitdir: string): string[] =>
  existsSync(join(gitdir, 'lfs/objects'))
    ? (readdirSync(join(gitdir, 'lfs/objects'), { recursive: true }) as string[])
        .flatMap(name => /[^/]{64}$/.exec(name)?.[0] ?? [])
        .sort()
    : []

const hashOf = (text: string) => createHash('sha256').update(text).digest('hex')

t.test('files of LFS are whole in a copy, land, and are kept with the branch', isInstalled('git-lfs'), async t => {
  const made = await world(t, workspace => {
    git(workspace, 'lfs', 'install', '--local')
    commit(workspace, { '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n', 'a.bin': 'first' }, 'first')
  })
  const [own, common] = [gitdirOf(made.data, 'c-1'), join(made.workspace, '.git')]
  t.equal(readFileSync(join(made.copy, 'a.bin'), 'utf8'), 'first')
  t.same(largeFilesIn(own), [], 'the copy borrows what the repository has')
  writeFileSync(join(made.copy, 'a.bin'), 'second')
  writeFileSync(join(made.copy, 'new.bin'), 'new')
  t.match(git(made.copy, 'add', 'new.bin'), '')
  // Neither of these is part of the branch: one is no object, and nothing points at the other.
  const forged = hashOf('forged')
  for (const [id, text] of [
    [forged, 'other'],
    [hashOf('unused'), 'unused'],
  ] as const) {
    mkdirSync(join(own, 'lfs/objects', id.slice(0, 2), id.slice(2, 4)), { recursive: true })
    writeFileSync(join(own, 'lfs/objects', id.slice(0, 2), id.slice(2, 4), id), text)
  }
  const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${forged}\nsize 5\n`
  writeFileSync(join(made.copy, 'forged.bin'), pointer)
  const { tip, out } = await made.commit()
  t.equal(out, undefined)
  t.same(largeFilesIn(common), ['first', 'second', 'new'].map(hashOf).sort(), 'checked, and only what is pointed at')
  t.match(git(made.workspace, 'show', `${tip}:a.bin`), /^version https:\/\/git-lfs/)
  t.notOk((await made.land())!.conflict)
  t.equal(readFileSync(join(made.workspace, 'a.bin'), 'utf8'), 'second')
  t.equal(readFileSync(join(made.workspace, 'new.bin'), 'utf8'), 'new')
  t.equal(readFileSync(join(made.workspace, 'forged.bin'), 'utf8'), pointer, 'a pointer to nothing stays one')
})

t.test('files of git-crypt are open in a copy, and sealed on its branch', isInstalled('git-crypt'), async t => {
  const made = await world(t, workspace => {
    git(workspace, 'crypt', 'init')
    commit(workspace, { '.gitattributes': '*.key filter=git-crypt\n', 'a.key': 'open\n' }, 'first')
  })
  t.equal(readFileSync(join(made.copy, 'a.key'), 'utf8'), 'open\n')
  appendFileSync(join(made.copy, 'a.key'), 'more\n')
  writeFileSync(join(made.copy, 'new.key'), 'new\n')
  const seen = await made.tree()
  const { tip } = await made.commit()
  t.equal(seen, git(made.workspace, 'rev-parse', `${tip}^{tree}`))
  for (const name of ['a.key', 'new.key'])
    t.ok(git(made.workspace, 'show', `${tip}:${name}`).startsWith('\0GITCRYPT'), name)
  t.notOk((await made.land())!.conflict)
  t.equal(readFileSync(join(made.workspace, 'a.key'), 'utf8'), 'open\nmore\n')
  t.equal(readFileSync(join(made.workspace, 'new.key'), 'utf8'), 'new\n')
})

t.test('where a filter cannot run, its files stay as git stores them, in its repository alone', async t => {
  const made = await world(t, workspace => {
    commit(workspace, { '.gitattributes': '*.big filter=far\n', 'a.big': 'pointer\n', 'a.txt': 'a\n' }, 'first')
    git(workspace, 'config', 'filter.far.clean', 'no-such-program clean')
    git(workspace, 'config', 'filter.far.smudge', 'no-such-program smudge')
    git(workspace, 'config', 'filter.far.required', 'true')
  })
  t.same(made.unfiltered, [{ repo: 'root', filters: ['far'] }])
  t.equal(readFileSync(join(made.copy, 'a.big'), 'utf8'), 'pointer\n')
  for (const name of ['a.big', 'a.txt', 'new.big']) writeFileSync(join(made.copy, name), 'other\n')
  t.notOk((await made.land())!.conflict)
  for (const name of ['a.big', 'a.txt', 'new.big']) t.equal(readFileSync(join(made.workspace, name), 'utf8'), 'other\n')
})

t.test('a filter that fails otherwise writes nothing, and says so', async t => {
  const made = await world(t, workspace => {
    commit(workspace, { '.gitattributes': '*.key filter=lock\n', 'a.key': 'a\n' }, 'first')
    git(workspace, 'config', 'filter.lock.clean', 'cat')
    git(workspace, 'config', 'filter.lock.smudge', 'cat')
    git(workspace, 'config', 'filter.lock.required', 'true')
  })
  writeFileSync(join(made.copy, 'a.key'), 'b\n')
  await made.commit()
  git(made.workspace, 'config', 'filter.lock.smudge', 'false')
  await t.rejects(made.land(), { reason: 'unprocessable', message: /the filter lock of a.key failed/ })
  t.equal(readFileSync(join(made.workspace, 'a.key'), 'utf8'), 'a\n')
})

t.test('a commit writes only what changed, and reads no file again', async t => {
  const made = await world(t, workspace => {
    const files = Array.from({ length: 300 }, (_, at) => [`f/${at}.txt`, `${at}\n`.repeat(20)] as const)
    commit(workspace, Object.fromEntries(files), 'first')
    git(workspace, 'gc', '-q')
  })
  const objects = join(gitdirOf(made.data, 'c-1'), 'objects')
  const loose = () =>
    (readdirSync(objects, { recursive: true }) as string[]).filter(
      name => /^..\/./.test(name) && !/^(info|pack)/.test(name),
    )
  t.same(loose(), [])
  writeFileSync(join(made.copy, 'f/7.txt'), 'seven\n')
  writeFileSync(join(made.copy, Buffer.from('n\xe9w', 'latin1').toString('latin1')), 'new\n')
  const { tip } = await made.commit()
  const written = git(made.workspace, 'rev-list', '--objects', `main..${tip}`).split('\n')
  t.same(loose(), [], 'what was imported is not held twice')
  t.equal(written.length, 5, 'a commit, two trees and two files')
})
