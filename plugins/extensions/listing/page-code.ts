import { createHash } from 'node:crypto'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { refuse, type Bytes } from '../../../sdk/index.js'
import { plainText } from '../../../sdk/node/files/real-folders.js'
import type { LoadedExtension } from './catalog.js'
import type { PageCode } from './contract.js'
import type { LoadedExtensions } from './loaded-extensions.js'

/** The most bytes that the code of a page or a backend may have. */
export const MOST_CODE = 32 * 1024 * 1024

/** Code as JavaScript: types of TypeScript are replaced by spaces, so that lines and columns stay. */
export const withoutTypes = (path: string, text: string): string => {
  if (!/\.[cm]?ts$/.test(path)) return text
  // Node prints a warning at the first use, which the operator of the daemon can do nothing about.
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return stripTypeScriptTypes(text)
  } finally {
    process.emitWarning = emitWarning
  }
}

/** The code of an extension's page, as browsers load it. */
export const pageCode = async (all: LoadedExtensions, id: string): Promise<Bytes & PageCode> => {
  if (all.isBuiltin(id)) return refuse('not-found', `${id} has no page of its own`)
  await all.refresh()
  const found = all.get(id)
  const { entry } = found.manifest
  if (entry === undefined) return refuse('not-found', `${id} has no page`)
  if (!all.runnable(id)) return refuse('not-found', `${id} is switched off, or waits for approval`)
  const text = await codeText(found, entry)
  if (text === undefined) return refuse('not-found', `${entry} of ${id} cannot be read`)
  const code = stripped(entry, text)
  const etag = `"${createHash('sha256').update(code).digest('base64url').slice(0, 22)}"`
  return {
    'content-type': 'text/javascript; charset=utf-8',
    data: code,
    headers: { etag, 'cache-control': 'no-cache' },
  }
}

/** The text of a file that the manifest names. */
export const codeText = ({ dir }: Pick<LoadedExtension, 'dir'>, path: string): Promise<string | undefined> =>
  plainText(join(dir, path), MOST_CODE)

const stripped = (path: string, text: string): string => {
  try {
    return withoutTypes(path, text)
  } catch (error) {
    const [line = ''] = (error instanceof Error ? error.message : String(error)).trim().split('\n')
    return refuse('unprocessable', `${path}: ${line.slice(0, 300)}`)
  }
}
