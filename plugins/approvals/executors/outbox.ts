import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { refuse, type Host } from '../../../sdk/index.js'
import { escapedHtml } from '../../../sdk/node/pages/message-page.js'
import type { MediaCopies } from '../media.js'
import type { ActionBody } from '../contract.js'
import type { StoredApproval } from '../stored-approval.js'
import type { CarriedOut, Executor, Missing } from './executor.js'

type OutboxHost = Pick<Host, 'call' | 'serves' | 'place'>

const PAGE = 'index.html'
const NAME = /^[^/.\\][^/\\]{0,119}$/

const PUBLISH = 'outbox.publish'

/** The path that an action publishes, whose arguments are checked; undefined: it is another action. */
export const publishedPath = ({ key, args }: ActionBody): string | undefined => {
  if (key !== PUBLISH) return undefined
  const wrong = (field: string, expected: string): never =>
    refuse('invalid', `action.args.${field}: expected ${expected}`, {
      errors: [{ path: `action.args.${field}`, expected }],
    })
  const { path, as, expiresAt, ...more } = args
  const [other] = Object.keys(more)
  if (other !== undefined) wrong(other.slice(0, 60), 'path, as and expiresAt alone')
  if (as !== undefined && !(typeof as === 'string' && NAME.test(as))) wrong('as', 'a name such as report')
  if (expiresAt !== undefined && !Number.isSafeInteger(expiresAt)) wrong('expiresAt', 'milliseconds since the epoch')
  const isPath = typeof path === 'string' && path !== '' && path !== '.' && path.split('/')[0] !== 'public'
  return isPath ? path : wrong('path', 'a path of the workspace outside of public/')
}

/** Publishes a file or folder as it was when the action was filed. */
export const outboxFiles = async (
  host: OutboxHost,
  copies: MediaCopies,
  item: StoredApproval,
): Promise<Executor | Missing> => {
  const { args } = item.action!
  if (!(await host.serves(PUBLISH))) return { problem: 'this sandbox has no outbox' }
  const { path, as = basename(String(path)), expiresAt } = args as { path: string; as?: string; expiresAt?: number }
  return {
    lane: 'outbox',
    subjects: [{ kind: 'action', provider: 'outbox', type: 'publish', text: JSON.stringify(args).slice(0, 20_000) }],
    carryOut: async () => {
      const { url, files } = await host.call('outbox.publish', {
        ...{ place: copies.treeOf(item), as, by: item.approvedBy ?? item.proposedBy },
        ...(expiresAt !== undefined && { expiresAt }),
      })
      return { result: `published as ${as}, ${files} files`, ...(url !== undefined && { url }) }
    },
  }
}

/** Publishes a post as a page: its content is the page, its files lie beside it, and its target is the name. */
export const outboxPage = async (
  host: OutboxHost,
  copies: MediaCopies,
  item: StoredApproval,
): Promise<Executor | Missing> => {
  const { target = '', content } = item.post!
  if (!(await host.serves('outbox.publish'))) return { problem: 'this sandbox has no outbox' }
  const name = target === '' ? item.id : target
  if (!NAME.test(name))
    return { problem: `a page needs a name such as report as its target, found ${JSON.stringify(name.slice(0, 200))}` }
  return {
    lane: 'outbox',
    subjects: [{ kind: 'action', provider: 'outbox', type: 'publish', text: content.slice(0, 20_000).toWellFormed() }],
    carryOut: () => published(host, copies, item, name),
  }
}

const published = async (
  host: OutboxHost,
  copies: MediaCopies,
  item: StoredApproval,
  name: string,
): Promise<CarriedOut> => {
  const { title = '', content } = item.post!
  await mkdir(join(host.place.folder, 'pages'), { recursive: true, mode: 0o700 })
  const made = await mkdtemp(join(host.place.folder, 'pages', 'page-'))
  try {
    const folder = join(made, 'page')
    await mkdir(folder)
    await writeFile(join(folder, PAGE), pageOf(title, content), { flag: 'wx' })
    for (const { name: file, bytes } of await copies.read(item))
      await writeFile(join(folder, file), bytes, { flag: 'wx' }).catch(() =>
        refuse('unprocessable', `two of its files are called ${file}; the page itself is ${PAGE}`),
      )
    const { url, files } = await host.call('outbox.publish', {
      ...{ place: folder, as: name, by: item.approvedBy ?? item.proposedBy },
    })
    return { result: `published as ${name}, ${files} files`, ...(url !== undefined && { url }) }
  } finally {
    await rm(made, { recursive: true, force: true })
  }
}

/** A page as it was written, or a page that shows a text. */
const pageOf = (title: string, content: string): string =>
  content.trimStart().startsWith('<')
    ? content
    : `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">`
      + `<meta name="color-scheme" content="light dark"><title>${escapedHtml(title)}</title>`
      + `<pre style="white-space:pre-wrap">${escapedHtml(content)}</pre></html>\n`
