/** The host and the project that the address of a remote names. */
export interface RemoteProject {
  readonly host: string
  readonly project: string
}

const SCP = /^(?:[^@/\s]+@)?([^:/\s]{2,}):(?!\/\/)(.+)$/

/** The host and project of an address in http, ssh, git or scp form; undefined: it names no host. */
export const projectOf = (address: string): RemoteProject | undefined => {
  const scp = SCP.exec(address)
  if (scp && !/^[a-z][a-z0-9+.-]*:\/\//i.test(address)) return named(scp[1]!, scp[2]!)
  let url: URL
  try {
    url = new URL(address)
  } catch {
    return undefined
  }
  if (!/^(?:https?|ssh|git):$/.test(url.protocol) || url.hostname === '') return undefined
  return named(url.hostname, decoded(url.pathname))
}

const decoded = (path: string): string => {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

const named = (host: string, path: string): RemoteProject | undefined => {
  const project = path
    .replace(/^\/+/, '')
    .replace(/\/+$/, '')
    .replace(/\.git$/, '')
  return project === '' ? undefined : { host: host.toLowerCase(), project }
}

/** The address without a user name and a password. */
export const withoutCredentials = (address: string): string =>
  address.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/@]*@/i, '$1').replace(/^[^@/\s:]+:[^@/\s]*@/, '')
