import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { GivenBytes } from '../../../sdk/contract.js'
import { refuse } from '../../../sdk/index.js'
import { packageFolder } from '../../../sdk/node/programs/package.js'
import type { WidgetScript } from './contract.js'

const FILE = 'dist/bundle/console/widget/widget.js'

/** Serves the script that draws the chat in a web page, which the build of the console makes. */
export const widgetScript = (root: string): (() => Promise<GivenBytes & WidgetScript>) => {
  let script: Promise<Buffer> | undefined
  return async () => {
    script ??= readFile(join(packageFolder(root), FILE))
    const data = await script.catch(() => {
      script = undefined
      return refuse('unavailable', 'the script of the chat is missing in this build: build the program again')
    })
    return {
      'content-type': 'text/javascript; charset=utf-8',
      data,
      headers: {
        etag: `"${hash('sha256', data, 'base64url').slice(0, 22)}"`,
        'cache-control': 'no-cache',
        // Pages of other sites load it.
        'cross-origin-resource-policy': 'cross-origin',
      },
    }
  }
}
