import { lackingProgram } from '../machine/lacking.js'
import { rcloneWords, runRclone } from '../carriers/rclone-remote.js'
import { needProgram, ownEnv, ownProgram, run } from '../../../sdk/node/programs/run.js'
import { refuse } from '../../../sdk/index.js'
import { lackingWords } from '../machine/lacking.js'
import type { OfferedShare, SmbTarget } from '../contract.js'
import type { ReachedShare } from '../carriers/carrier.js'
import { connectTo, failureWords } from './address.js'

/** What an SMB server answered. */
export interface SmbAnswer {
  readonly reachable: boolean
  readonly latencyMs?: number
  readonly auth: 'ok' | 'refused' | 'untested'
  readonly shares: OfferedShare[]
  readonly detail?: string
}

const ASK_MS = 10_000
const MOST_SHARES = 500
const REFUSED = /NT_STATUS_(LOGON_FAILURE|ACCESS_DENIED|ACCOUNT_\w+|PASSWORD_\w+|WRONG_PASSWORD)|logon is invalid/i

/** Lists the shares of an SMB server. */
export const askSmb = async (share: ReachedShare): Promise<SmbAnswer> => {
  const { entry, address, signal } = share
  const target = entry.config as SmbTarget
  let latencyMs: number
  try {
    const opened = await connectTo(address, target.port ?? 445, signal)
    opened.socket.destroy()
    latencyMs = opened.latencyMs
  } catch (error) {
    return { reachable: false, auth: 'untested', shares: [], detail: failureWords(error) }
  }
  const listed = (await ownProgram('smbclient')) ? await byClient(share, target) : await byRclone(share)
  const { shares, failure } = listed
  const signsIn = target.username !== undefined
  if (failure === undefined) return { reachable: true, latencyMs, auth: signsIn ? 'ok' : 'untested', shares }
  const refused = REFUSED.test(failure)
  const auth = refused && signsIn ? 'refused' : 'untested'
  return {
    reachable: refused || /NT_STATUS|response error/.test(failure),
    latencyMs,
    auth,
    shares: [],
    detail: failure,
  }
}

interface Listed {
  readonly shares: OfferedShare[]
  readonly failure?: string
}

const byClient = async (
  { address, secrets, signal }: ReachedShare,
  { port = 445, username, domain, server }: SmbTarget,
): Promise<Listed> => {
  const login = username === undefined ? ['-N'] : ['-U', domain === undefined ? username : `${domain}\\${username}`]
  // smbclient reads the password from its environment, which no other user can see.
  const env = await ownEnv({ LC_ALL: 'C.UTF-8', ...(username !== undefined && { PASSWD: secrets.password ?? '' }) })
  const args = ['-L', `//${server}`, '-I', address, '-p', String(port), '-g', '-m', 'SMB3', ...login]
  const options = { cwd: '/', env, signal, timeoutMs: ASK_MS, maxBytes: 262_144 }
  const { code, stdout, stderr, timedOut } = await run(await needProgram('smbclient'), args, options)
  if (timedOut) return { shares: [], failure: 'it does not answer' }
  if (code !== 0) return { shares: [], failure: lastLine(`${stdout.toString()}\n${stderr}`) }
  const shares = stdout
    .toString()
    .split('\n')
    .map(line => line.split('|'))
    .filter(([kind]) => kind === 'Disk')
    .map(([, name = '', comment = '']) => ({ name, ...(comment !== '' && { comment }) }))
  return { shares: shares.slice(0, MOST_SHARES) }
}

const byRclone = async (share: ReachedShare): Promise<Listed> => {
  const missing = await lackingProgram('rclone')
  if (missing.length > 0)
    refuse('missing-program', `${lackingWords(await lackingProgram('smbclient'))}; rclone could ask it too`)
  const listed = await runRclone(share, ['lsf', '--dirs-only'], '')
  if (listed.code !== 0) return { shares: [], failure: rcloneWords(listed) }
  const names = listed.stdout.toString().split('\n').filter(Boolean)
  return { shares: names.slice(0, MOST_SHARES).map(name => ({ name: name.replace(/\/$/, '') })) }
}

const lastLine = (said: string): string => {
  const lines = said.split('\n').filter(line => line.trim() !== '')
  return (lines.find(line => line.includes('NT_STATUS')) ?? lines.at(-1) ?? 'it did not list its shares').slice(0, 300)
}
