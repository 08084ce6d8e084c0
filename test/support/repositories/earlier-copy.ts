import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

interface Note {
  repos: { repo: string; common: string; head: string; gitdir?: string; entry?: string }[]
  shown: string[]
}

/**
 * Converts a private copy, while no daemon runs, to the format of earlier versions: a linked working tree whose objects
 * and branch lie in the repository itself.
 *
 * @param folder Where the group agent keeps its files.
 */
export const makeEarlier = (folder: string, id: string): void => {
  const path = join(folder, 'made', `${id}.json`)
  const note = JSON.parse(readFileSync(path, 'utf8')) as Note
  for (const tree of note.repos) {
    const { repo, common, gitdir } = tree
    const copy = join(folder, 'checkouts', id, repo === 'root' ? '' : repo)
    const entry = join(common, 'worktrees', id)
    mkdirSync(entry, { recursive: true })
    cpSync(gitdir!, entry, {
      recursive: true,
      filter: from =>
        !/^\/(objects|refs|info|config|packed-refs|shallow|logs\/refs)(\/|$)/.test(from.slice(gitdir!.length)),
    })
    cpSync(join(gitdir!, 'objects'), join(common, 'objects'), {
      recursive: true,
      force: false,
      filter: from => !from.endsWith('alternates'),
    })
    const branch = join('refs/heads/agent', id)
    mkdirSync(join(common, 'refs/heads/agent'), { recursive: true })
    cpSync(join(gitdir!, branch), join(common, branch))
    for (const [name, text] of Object.entries({
      commondir: '../..',
      gitdir: join(copy, '.git'),
      locked: 'a private copy of the sandbox',
    }))
      writeFileSync(join(entry, name), `${text}\n`)
    writeFileSync(join(copy, '.git'), `gitdir: ${entry}\n`)
    for (const gone of [gitdir!, `${gitdir!}.seen`]) rmSync(gone, { recursive: true })
    delete tree.gitdir
    tree.entry = id
  }
  rmSync(join(folder, 'branches', `${id}.json`), { force: true })
  writeFileSync(path, JSON.stringify(note))
}
