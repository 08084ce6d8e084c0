import { createHash } from 'node:crypto'
import type { Host } from '../../host.js'
import type { WorkSession } from './work-sessions.js'

const MOST = 20
const HASHED = 6

type PreviewHost = Pick<Host, 'call' | 'serves' | 'log'>

/** The name of a part in the label of a preview. */
const partOf = (name: string): string => {
  const plain = name.replaceAll('/', '--').replace(/[^A-Za-z0-9_-]/g, '_')
  if (plain.length <= MOST) return plain
  const hash = createHash('sha256').update(name).digest('hex').slice(0, HASHED)
  return `${plain.slice(0, MOST - HASHED - 1)}-${hash}`
}

/** The label under which the server of a repository is shown; its path is empty for the root. */
export const repoLabel = (repo: string): string => `preview-${partOf(repo === '' || repo === '.' ? 'root' : repo)}`

/** The label under which an app of a repository is shown. */
export const appLabel = (repo: string, app: string): string => `${repoLabel(repo)}--${partOf(app)}`

/** Shows what runs in a session, and answers its address; nothing without group ports. */
export const showApp = async (
  host: PreviewHost,
  label: string,
  { pid, port }: Pick<WorkSession, 'pid' | 'port'>,
): Promise<{ previewUrl?: string }> => {
  if (pid === undefined || !(await host.serves('preview.register'))) return {}
  try {
    const target = { pid, ...(port !== undefined && { port }) }
    const { url } = await host.call('preview.register', { label, target })
    return url === undefined ? {} : { previewUrl: url }
  } catch (error) {
    // It runs all the same.
    host.log.warn('a server got no preview', { label, error: String(error) })
    return {}
  }
}

/** The address of what is shown. */
export const addressOfApp = async (host: PreviewHost, label: string): Promise<{ previewUrl?: string }> => {
  if (!(await host.serves('preview.urlOf'))) return {}
  const { url } = await host.call('preview.urlOf', { label })
  return url === undefined ? {} : { previewUrl: url }
}

/** Shows it no longer. */
export const hideApp = async (host: PreviewHost, label: string): Promise<void> => {
  if (await host.serves('preview.unregister')) await host.call('preview.unregister', { label })
}
