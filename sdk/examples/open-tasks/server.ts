// Lists the unticked boxes of the Markdown files below docs/: a route, and the page beside it that shows them.
import type { ExtensionHost } from 'sandbox-daemon/sdk'

/** An unticked box. */
export interface OpenTask {
  path: string
  line: number
  text: string
}

const FOLDER = 'docs'
const MOST_FILES = 500
const BOX = /^\s*[-*] \[ \] (.+)$/

const tasksIn = (path: string, text: string): OpenTask[] =>
  text.split('\n').flatMap((line, at) => {
    const [, task] = BOX.exec(line) ?? []
    return task === undefined ? [] : [{ path, line: at + 1, text: task.trim() }]
  })

const openTasks = async ({ files }: Pick<ExtensionHost, 'files'>): Promise<OpenTask[]> => {
  const found: OpenTask[] = []
  const folders = [FOLDER]
  let read = 0
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop())
    for (const { name, type } of await files.list(folder)) {
      const path = `${folder}/${name}`
      if (type === 'dir') folders.push(path)
      else if (name.endsWith('.md') && read++ < MOST_FILES)
        found.push(...tasksIn(path, new TextDecoder().decode(await files.read(path))))
    }
  return found.sort((one, other) => (one.path < other.path ? -1 : one.path > other.path ? 1 : one.line - other.line))
}

export const activate = (host: ExtensionHost): void => {
  host.routes.handle('GET /tasks', { floor: 'viewer' }, async () => {
    const there = await host.files.stat(FOLDER)
    return { body: { tasks: there?.type === 'dir' ? await openTasks(host) : [] } }
  })
}
