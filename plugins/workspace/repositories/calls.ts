import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Handlers, Host } from '../../../sdk/index.js'
import { accessTo } from '../../../sdk/index.js'
import { sharedTree } from '../../../sdk/node/access/caller-tree.js'
import type { RepositoryCalls } from './contract.js'
import { repoFolder } from '../../../sdk/node/repositories/repo-folder.js'
import { reposIn } from './found.js'
import { graphOf, namedFolders } from './packages.js'

/** Lists the repositories of the workspace, and the packages in them. */
export const repositoryCalls = (host: Host): Handlers<RepositoryCalls> => ({
  'GET /workspace/repos': async (_, context) => reposIn(await sharedTree(host, context)),

  'GET /workspace/modules': async (_, context) => {
    const tree = await sharedTree(host, context)
    const { repos } = await reposIn(tree)
    const own = await lstat(join(tree.root, '.git')).catch(() => undefined)
    const all = [...(own && accessTo(tree.reach, '.') !== undefined ? ['.'] : []), ...repos]
    const found = all.filter(path => accessTo(tree.reach, path) !== undefined)
    return {
      repos: await Promise.all(
        found.map(async path => ({
          repo: path === '.' ? 'root' : path,
          modules: await namedFolders(tree, path, repos),
        })),
      ),
    }
  },

  'GET /workspace/repos/{repo}/graph': async ({ repo }, context) => {
    const tree = await sharedTree(host, context)
    const path = await repoFolder(tree, repo)
    return graphOf(tree, path, (await reposIn(tree)).repos)
  },
})
