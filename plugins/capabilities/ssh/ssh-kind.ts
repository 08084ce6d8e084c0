import { mkdir, rename, rm } from 'node:fs/promises'
import { Refusal, type Host } from '../../../sdk/index.js'
import { KnownHosts } from '../../../sdk/node/transport/known-hosts.js'
import { activeStatus, failingStatus, type KindHandler } from '../records/kinds.js'
import type { SshDoors } from './doors.js'
import { hostKeyFingerprint, meetServer } from './handshake.js'
import { checkServer, loginOf, secretOf, SECRET_FIELDS, sshServerOf } from './server.js'
import { SshFailure, shownServer } from './words.js'

/** How long a server that let the sandbox in counts as one that would again. */
const TRUSTED_MS = 300_000

/** Servers reached over ssh. */
export const sshKind = (host: Pick<Host, 'place' | 'call'>, doors: SshDoors): KindHandler => {
  const met = new Map<string, number>()
  const knownHosts = async (id: string): Promise<KnownHosts> => {
    await mkdir(doors.folder(id), { recursive: true, mode: 0o700 })
    return new KnownHosts(doors.folder(id))
  }
  return {
    kind: 'ssh',
    secretFields: () => Object.values(SECRET_FIELDS),
    mainSecret: config => SECRET_FIELDS[loginOf({ config })],
    label: () => undefined,
    check: checkServer,
    apply: async (entry, report, signal) => {
      const server = sshServerOf(entry)
      const known = await knownHosts(entry.id)
      const before = hostKeyFingerprint(known, server)
      report(`signing in to ${shownServer(server)} as ${server.user}`)
      await meetServer(host, server, secretOf(entry), known, signal)
      met.set(entry.id, Date.now())
      const key = hostKeyFingerprint(known, server)
      if (before === undefined && key !== undefined)
        report(
          `its host key is ${key}; from now on no other is accepted: `
            + "compare it with what the server's administrator says",
        )
      report(`turns reach it as: ssh ${entry.id}`)
      return activeStatus()
    },
    probe: async (entry, signal, thorough) => {
      try {
        if (!thorough && Date.now() - (met.get(entry.id) ?? 0) < TRUSTED_MS) return activeStatus()
        await meetServer(host, sshServerOf(entry), secretOf(entry), await knownHosts(entry.id), signal)
        met.set(entry.id, Date.now())
        return activeStatus()
      } catch (error) {
        met.delete(entry.id)
        if (error instanceof SshFailure) return failingStatus(error.message, error.code)
        if (!(error instanceof Refusal)) throw error
        return failingStatus(error.message, error.reason === 'missing-program' ? 'missing-program' : undefined)
      }
    },
    forget: async id => {
      met.delete(id)
      await doors.close(id)
      await rm(doors.folder(id), { recursive: true, force: true })
    },
    rename: async (id, to) => {
      met.delete(id)
      await doors.close(id)
      await rename(doors.folder(id), doors.folder(to)).catch(error => {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      })
    },
    busy: id => doors.busy(id),
  }
}
