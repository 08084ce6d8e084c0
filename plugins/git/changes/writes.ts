import { refuse, type Handlers } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { writing, type WriteDeps } from '../writes/write.js'
import { Committing, commitIndex } from './committing.js'
import type { GitChangeCalls } from './contract.js'
import { checkChanges } from './stamps.js'
import { stageText } from './staged-text.js'
import { discardPaths, stagePaths, takeSide, unstagePaths } from './index-writes.js'

type WriteCalls = Pick<
  GitChangeCalls,
  'POST /git/{repo}/stage' | 'POST /git/{repo}/unstage' | 'POST /git/{repo}/commit' | 'POST /git/{repo}/discard'
>

/** Serves the writes of the index and uncommitted work. */
export const changeWrites = (
  deps: WriteDeps & { readonly committing: Committing; readonly folder: string },
): Handlers<WriteCalls> => {
  const { host, objects, scans, committing, folder } = deps
  return {
    'POST /git/{repo}/stage': ({ repo, paths, take, content, baseHash }, context) => {
      if ((content === undefined) !== (baseHash === undefined))
        refuse('invalid', 'expected content and baseHash together, found one of them')
      if (content !== undefined && (take !== undefined || paths.length > 1))
        refuse('invalid', `expected content for one path, found ${take ? 'take besides' : `${paths.length} paths`}`)
      return writing(deps, { repo, verb: 'stage' }, context, async write => {
        if (content !== undefined && baseHash !== undefined) {
          await stageText(write, objects, { path: paths[0]!, content, baseHash })
          return { ok: true as const }
        }
        const left = take ? await takeSide(write, paths, take) : paths
        if (left.length > 0) await stagePaths(write, left)
        return { ok: true as const }
      })
    },
    'POST /git/{repo}/unstage': ({ repo, paths }, context) =>
      writing(deps, { repo, verb: 'unstage' }, context, async write => {
        await unstagePaths(write, paths)
        return { ok: true as const }
      }),
    'POST /git/{repo}/commit': ({ repo, message, all = false, paths, only, amend, expectHead }, context) => {
      if (all && paths) refuse('invalid', 'expected all or paths, found both')
      if (only && !paths) refuse('invalid', 'only: expected with paths, found without')
      if (message.trim() === '')
        refuse('invalid', 'message: expected words, found blanks only', {
          errors: [{ path: 'message', expected: 'words' }],
        })
      return committing.with(repo, () =>
        writing(deps, { repo, verb: 'commit', expectHead }, context, async write => {
          const place = { workspace: host.place.workspace, folder }
          const head = await commitIndex(write, { message, all, paths, only, amend }, place)
          scans.drop()
          const changes = await scans.of(write.opened)
          if (head === undefined) return { committed: false, ...(write.head && { head: write.head }), changes }
          const subject = message.trim().split('\n')[0]!.slice(0, 200)
          await write.note('committed', { sha: head, subject })
          return { committed: true, head, changes }
        }),
      )
    },
    'POST /git/{repo}/discard': ({ repo, paths, expect, expectHead }, context) =>
      writing(deps, { repo, verb: 'discard', whole: paths === undefined, expectHead }, context, async write => {
        if (expect) await checkChanges(write.opened, paths, expect)
        const point = await write.savePoint('before discarding changes')
        failpoint('git.discard.saved')
        await discardPaths(write, paths)
        await write.note('discarded', { ...(paths && { paths: paths.slice(0, 20) }), ...(point && { point }) })
        return { ok: true as const, ...(point !== undefined && { point }) }
      }),
  }
}
