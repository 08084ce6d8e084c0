/** Why a remote did not do it, as git's own words tell it. */
export interface RemoteFailure {
  readonly code: 'auth' | 'no-remote' | 'other' | 'unreachable'
  readonly reason: string
}

/** Matches one of these patterns, ignoring case. */
const oneOf = (...patterns: readonly string[]): RegExp => new RegExp(patterns.join('|'), 'i')

const AUTH = oneOf(
  'authentication failed|could not read (?:username|password)|terminal prompts disabled',
  'returned error: 40[13]\\b|permission denied|access denied|the stored key cannot be used',
)
const UNREACHABLE = oneOf(
  "could(?:n't| not) (?:resolve|connect)|failed to connect|unable to (?:look up|connect)",
  'connection (?:refused|reset|timed out|closed)|timed out|no route to host|network is unreachable',
  'early eof|hung up|empty reply|ssl|tls|certificate|returned error: 5\\d\\d',
)
const CHANGED_KEY = /remote host identification has changed|host key verification failed/i
/** What git says after ssh said why. */
const SSH_CLOSING =
  /^fatal: could not read from remote repository|^please make sure you have the correct access|^and the repository/i
const REDIRECT = /returned error: 30[12378]\b|redirect/i

const plainLines = (stderr: string): string[] =>
  stderr
    .split(/[\r\n]/)
    .map(line =>
      line
        .replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '')
        .replace(/[\x00-\x1f\x7f]/g, ' ')
        .trim(),
    )
    .filter(line => line !== '' && !line.startsWith('hint:'))

/** The last lines of the remote's own messages, without progress. */
export const remoteLines = (stderr: string): string[] =>
  plainLines(stderr)
    .filter(line => line.startsWith('remote:') && !/\d+% \(|, done\.$/.test(line))
    .map(line => line.slice('remote:'.length).trim())
    .filter(line => line !== '')
    .slice(-3)

/** Classifies the messages of a git that failed at a remote. */
export const remoteFailure = (stderr: string, host: string): RemoteFailure => {
  if (REDIRECT.test(stderr))
    return { code: 'unreachable', reason: `${host} sends on to another address: set the remote to that address` }
  if (CHANGED_KEY.test(stderr))
    return {
      code: 'auth',
      reason:
        `the host key of ${host} is not the one it had before, so nothing was sent: if its keeper changed it, remove `
        + 'its line from git/known-hosts in the data folder of the sandbox',
    }
  const lines = plainLines(stderr).filter(each => !SSH_CLOSING.test(each))
  const line = lines.findLast(each => /^(?:fatal|error):/.test(each)) ?? lines.at(-1) ?? 'git said nothing'
  const reason = line.replace(/^(?:fatal|error): /, '').slice(0, 500)
  if (AUTH.test(stderr)) return { code: 'auth', reason }
  return { code: UNREACHABLE.test(stderr) ? 'unreachable' : 'other', reason }
}
