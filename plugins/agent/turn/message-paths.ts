import { stat } from 'node:fs/promises'
import { extname, relative } from 'node:path'
import type { AccessView } from '../../../sdk/node/access/access-view.js'
import { inside } from '../../../sdk/node/files/paths.js'
import type { TurnRequest } from '../providers/adapter.js'

const MIMES: { readonly [extension: string]: string } = {
  '.txt': 'text/plain',
  '.md': 'text/markdown',
  '.json': 'application/json',
  '.html': 'text/html',
  '.css': 'text/css',
  '.csv': 'text/csv',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
  '.svg': 'image/svg+xml',
  '.pdf': 'application/pdf',
}

/** The paths that are visible in an access view. */
export const visiblePaths = async (paths: readonly string[], seen: AccessView): Promise<string[]> => {
  const found = await Promise.all(paths.map(path => seen.sees(path)))
  return paths.filter((_, at) => found[at])
}

/** The existing attachments, as an adapter receives them. */
export const attachedFiles = async (
  workspace: string,
  paths: readonly string[],
): Promise<TurnRequest['attachments']> => {
  const found = await Promise.all(
    paths.map(async path => {
      const absolute = await inside(workspace, path).catch(() => undefined)
      if (!absolute) return []
      const facts = await stat(absolute).catch(() => undefined)
      if (!facts?.isFile()) return []
      return [
        { path, absolute, mime: MIMES[extname(path).toLowerCase()] ?? 'application/octet-stream', bytes: facts.size },
      ]
    }),
  )
  return found.flat()
}

/** The paths that exist in the workspace. */
export const realPaths = async (workspace: string, paths: readonly string[]): Promise<string[]> => {
  const found = await Promise.all(
    paths.map(path =>
      inside(workspace, path).then(
        at => [relative(workspace, at) || path],
        () => [],
      ),
    ),
  )
  return found.flat()
}
