import { refuse } from '../../../sdk/index.js'
import { checkedRef } from '../repositories/names.js'
import { remoteAddress } from '../../../sdk/node/transport/remote-address.js'
import { orConflict, type Writing } from '../writes/write.js'
import { remotesOf } from './settings.js'

/** Adds a remote, changes its address, or removes it if no address is given. */
export const setRemote = async (
  write: Writing,
  { name, url, workspace }: { readonly name: string; readonly url?: string | undefined; readonly workspace: string },
): Promise<void> => {
  const { git, repo } = write.opened
  checkedRef(name)
  const known = (await remotesOf(git)).some(remote => remote.name === name)
  if (url === undefined) {
    if (!known) refuse('not-found', `${repo} has no remote ${name}`)
    await orConflict(write.run(['remote', 'remove', name]))
    return
  }
  const address = remoteAddress(url, { workspace, from: git.place.dir, field: 'url' })
  if (address.kind !== 'local' && address.password !== undefined)
    refuse('invalid', 'url: expected an address without a password in it: store it as a secret bound to the host', {
      errors: [{ path: 'url', expected: 'an address without a password' }],
    })
  // A path is stored absolute, because git resolves a relative one from its working directory.
  const text = address.kind === 'local' ? address.url : url
  if (!known) {
    await orConflict(write.run(['remote', 'add', name, text]))
    return
  }
  await orConflict(write.run(['config', '--local', '--replace-all', `remote.${name}.url`, text]))
  await write.run(['config', '--local', '--unset-all', `remote.${name}.pushurl`], { ok: [0, 5] })
}
