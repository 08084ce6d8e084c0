import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { project } from './browser/page.js'

/** A page that people read, with its path in the project. */
export interface Guide {
  readonly path: string
  readonly text: string
}

const guideAt = (path: string): Guide => ({ path, text: readFileSync(join(project, path), 'utf8') })

/** What comes before others, because their commands name its conversations. */
const FIRST = ['README.md', 'plugins/agent/README.md', 'plugins/agents/README.md']
const LAST = ['kernel/README.md', 'kernel/WALL.md', 'sdk/README.md', 'CONTRIBUTING.md']
/** Their commands need a model server and a program of the reader's, so they run apart. */
const OF_AGENTS = ['plugins/endpoints/README.md', 'plugins/capabilities/README.md']

/** The guide of every group. */
export const groupGuides: readonly Guide[] = globSync('plugins/*/README.md', { cwd: project }).sort().map(guideAt)

/** The pages whose commands work on a new sandbox, in the order in which a reader could go through them. */
export const guides: readonly Guide[] = [
  ...FIRST.map(guideAt),
  ...groupGuides.filter(({ path }) => !FIRST.includes(path) && !OF_AGENTS.includes(path)),
  ...LAST.map(guideAt),
]

/** The pages about models and agent programs of the reader's. */
export const agentGuides: readonly Guide[] = OF_AGENTS.map(guideAt)

/** Every page of the project in Markdown. */
export const allPages = (): Guide[] =>
  globSync('{*.md,{kernel,plugins,sdk,test,openapi,manifests}/**/*.md}', {
    cwd: project,
    exclude: ['**/node_modules/**', '**/fixtures/**'],
  })
    .sort()
    .map(guideAt)
