import { isAbsolute } from 'node:path'
import { refuse } from '../../refusal.js'
import { inside } from '../files/paths.js'
import { isLoopbackHostname } from '../models/outgoing.js'

/** How git reaches a repository. */
export interface GitAddress {
  readonly address: string
  /** The one transport that git may use. */
  readonly protocol: 'https' | 'http' | 'ssh' | 'file'
}

const SCP = /^[\w.-]+@[\w.-]+:(?!\/\/)[^\s-][^\s]*$/

/** Checks where code is fetched from: https, ssh, http on this machine, or a repository of the workspace. */
export const gitAddress = async (workspace: string, url: string): Promise<GitAddress> => {
  const wrong = (found: string) =>
    refuse('invalid', `url: expected https, ssh or a repository of the workspace, found ${found}`, {
      errors: [{ path: 'url', expected: 'an https or ssh address, or a path in the workspace' }],
    })
  if (/[\s\0]/.test(url)) return wrong('blanks')
  if (SCP.test(url)) return { address: url, protocol: 'ssh' }
  if (!/^[a-z][a-z0-9+.-]*:/i.test(url)) {
    if (isAbsolute(url) || url.startsWith('-')) return wrong('a path outside the workspace')
    return { address: await inside(workspace, url), protocol: 'file' }
  }
  const parsed = URL.parse(url)
  if (!parsed || parsed.password !== '') return wrong('an address with a password, or none')
  if (parsed.protocol === 'https:' && parsed.username === '') return { address: url, protocol: 'https' }
  if (parsed.protocol === 'http:' && isLoopbackHostname(parsed.hostname)) return { address: url, protocol: 'http' }
  if (parsed.protocol === 'ssh:' && !parsed.hostname.startsWith('-')) return { address: url, protocol: 'ssh' }
  return wrong(`the scheme ${parsed.protocol.slice(0, 20)}`)
}
