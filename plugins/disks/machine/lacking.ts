import { constants } from 'node:fs'
import { access, readFile } from 'node:fs/promises'
import { release } from 'node:os'
import { debianPackage, ownProgram } from '../../../sdk/node/programs/own-programs.js'
import type { DiskMissing } from '../contract.js'

/** CAP_SYS_ADMIN (capabilities(7)). */
const SYS_ADMIN = 21n

/** Asks for a program of the machine; what is missing of it. */
export const lackingProgram = async (name: string): Promise<DiskMissing[]> =>
  (await ownProgram(name)) === undefined
    ? [{ what: 'program', name, install: `apt-get install ${debianPackage(name)}` }]
    : []

/** What is missing to mount with FUSE. */
export const lackingFuse = async (): Promise<DiskMissing[]> => {
  const usable = await access('/dev/fuse', constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  )
  const install = 'load the module fuse, or start the container with --device=/dev/fuse'
  return usable ? [] : [{ what: 'device', name: '/dev/fuse', install }]
}

/** What is missing to mount at all. */
export const lackingPrivilege = async (): Promise<DiskMissing[]> => {
  const status = await readFile('/proc/self/status', 'utf8').catch(() => '')
  const mask = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`)
  const install = 'run the daemon as root, or start the container with --cap-add=SYS_ADMIN'
  return (mask >> SYS_ADMIN) & 1n ? [] : [{ what: 'privilege', name: 'CAP_SYS_ADMIN', install }]
}

/** What is missing where the kernel has to know a file system. */
export const lackingClient = async (name: 'cifs' | 'nfs'): Promise<DiskMissing[]> => {
  const known = await readFile('/proc/filesystems', 'utf8').catch(() => '')
  if (known.split('\n').some(line => [name, `${name}4`].includes(line.split('\t').at(-1)!))) return []
  const modules = await readFile(`/lib/modules/${release()}/modules.dep`, 'utf8').catch(() => '')
  if (new RegExp(`/${name}\\.ko[.a-z]*:`).test(modules)) return []
  return [{ what: 'kernel', name, install: `use a kernel that is built with ${name}` }]
}

/** Why something that lacks this does not work, as the end of a sentence. */
export const lackingWords = (missing: readonly DiskMissing[]): string =>
  missing
    .map(({ what, name, install }) =>
      what === 'kernel'
        ? `this kernel has no ${CLIENTS[name] ?? name} client (${name} is not in /proc/filesystems): ${install}`
        : `the ${what} ${name} is missing: ${install}`,
    )
    .join('; ')

const CLIENTS: { readonly [name: string]: string } = { cifs: 'SMB', nfs: 'NFS' }
