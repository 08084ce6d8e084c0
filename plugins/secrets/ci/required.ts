import { readdir } from 'node:fs/promises'
import { Refusal } from '../../../sdk/index.js'
import { readPlain } from '../../../sdk/node/files/files.js'
import { inside } from '../../../sdk/node/files/paths.js'

const FOLDERS = ['.github/workflows', '.forgejo/workflows', '.gitea/workflows']
const NAMED = /\bsecrets(?:\.([A-Za-z_][A-Za-z0-9_]{0,127})|\[\s*['"]([A-Za-z_][A-Za-z0-9_]{0,127})['"]\s*\])/g
const VARIABLE = /\$(?:\{)?([A-Za-z_][A-Za-z0-9_]{0,127})/g
/** What the services set themselves. */
const OWN = /^(?:GITHUB|GITEA|FORGEJO)_TOKEN$/
const MOST_FILES = 200
const MOST_BYTES = 1024 * 1024

/** The keys that the workflow files of a repository name, sorted; variables of GitLab only where they are stored. */
export const requiredByCi = async (workspace: string, repo: string, stored: ReadonlySet<string>): Promise<string[]> => {
  const found = new Set<string>()
  for (const folder of FOLDERS) {
    const at = await existing(workspace, repo, folder)
    const names = at === undefined ? [] : await readdir(at).catch(() => [])
    for (const name of names.filter(name => /\.ya?ml$/.test(name)).slice(0, MOST_FILES)) {
      const file = await existing(workspace, repo, `${folder}/${name}`)
      const text = (file !== undefined && readPlain(file, MOST_BYTES)) || ''
      for (const [, plain, quoted] of text.matchAll(NAMED)) found.add((plain ?? quoted)!)
    }
  }
  const pipeline = await existing(workspace, repo, '.gitlab-ci.yml')
  const text = (pipeline !== undefined && readPlain(pipeline, MOST_BYTES)) || ''
  for (const [, name] of text.matchAll(VARIABLE)) if (stored.has(name!)) found.add(name!)
  return [...found].filter(name => !OWN.test(name)).sort()
}

const existing = async (workspace: string, repo: string, path: string): Promise<string | undefined> => {
  try {
    return await inside(workspace, repo === 'root' ? path : `${repo}/${path}`)
  } catch (error) {
    if (error instanceof Refusal) return undefined
    throw error
  }
}
