import type { Host } from '../../../sdk/index.js'
import type { MediaCopies } from '../media.js'
import type { FindExecutor } from './executor.js'
import { connectionAction } from './connection-action.js'
import { extensionTool, toolsOfExtensions } from './extension-tool.js'
import { outboxFiles, outboxPage, publishedPath } from './outbox.js'
import { personaTurn } from './persona-turn.js'
import { webhook } from './webhook.js'

/**
 * What carries out each kind of item in this sandbox now; the tools of extensions are asked for once. `asks`: outside
 * systems may be asked whether they can, for something that is carried out now.
 */
export const executorsNow = (
  host: Pick<Host, 'call' | 'serves' | 'place'>,
  copies: MediaCopies,
  asks = false,
): FindExecutor => {
  let tools: ReturnType<typeof toolsOfExtensions> | undefined
  return async item => {
    if (item.action && publishedPath(item.action) !== undefined) return outboxFiles(host, copies, item)
    if (item.kind === 'action') {
      const connected = await connectionAction(host, item, asks)
      if (connected && (!('problem' in connected) || item.action!.capability !== undefined)) return connected
      // A connection may be called like the publisher of an extension.
      const extended = extensionTool(host, item, await (tools ??= toolsOfExtensions(host)))
      return 'problem' in extended && connected ? connected : extended
    }
    const { platform } = item.post!
    if (platform === 'webhook') return webhook(host, copies, item)
    return platform === 'outbox' ? outboxPage(host, copies, item) : personaTurn(host, copies, item)
  }
}
