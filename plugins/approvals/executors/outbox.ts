import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse, type Host } from '../../../sdk/index.js'
import { escapedHtml } from '../../../sdk/node/pages/message-page.js'
import type { MediaCopies } from '../media.js'
import type { StoredApproval } from '../stored-approval.js'
import type { CarriedOut, Executor, Missing } from './executor.js'

type OutboxHost = Pick<Host, 'call' | 'serves' | 'place'>

const PAGE = 'index.html'
const NAME = /^[^/.\\][^/\\]{0,119}$/

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
