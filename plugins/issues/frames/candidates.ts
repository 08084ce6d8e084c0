const FOLDERS = ['', 'dist/', 'build/', 'out/', 'public/', 'static/', '.output/public/', '.next/'] as const
const MOST_PARTS = 6
const SCHEME = /^[a-z][a-z0-9+.-]*:\/*/i
const WITH_HOST = /^(?:https?|wss?):\/\/[^/]*/i

/** The parts of a file name of a report: without address, query and steps upwards; undefined: it names no file. */
const partsOf = (file: string): string[] | undefined => {
  const path = file
    .replace(WITH_HOST, '')
    .replace(SCHEME, '')
    .replace(/[?#].*$/, '')
    .replaceAll('\\', '/')
  let plain = path
  try {
    plain = decodeURIComponent(path)
  } catch {
    // It is no address, so a percent sign is one.
  }
  if (plain.includes('\0')) return undefined
  const parts = plain.split('/').filter(part => !['', '.', '..', '~', '(app-pages-browser)'].includes(part))
  return parts.length > 0 ? parts : undefined
}

/** The paths in a repository at which a file of a report may be, the likeliest first. */
export const candidatesOf = (file: string, workspace: string, repo: string): string[] => {
  const parts = partsOf(file)
  if (!parts) return []
  const inRepo = (path: string) => (repo === '.' ? path : `${repo}/${path}`)
  const at = file.indexOf(`${workspace}/`)
  const exact = at >= 0 ? [file.slice(at + workspace.length + 1)] : []
  const ends = parts.map((_, from) => parts.slice(from).join('/')).slice(-MOST_PARTS)
  return [...exact, ...ends.flatMap(end => FOLDERS.map(folder => inRepo(folder + end)))]
}
