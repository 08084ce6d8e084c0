import { createHash } from 'node:crypto'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Host } from '../../../sdk/index.js'
import type { Program } from '../../../sdk/kernel.js'
import { writeAtomic } from '../../../sdk/node/files/files.js'
import { deploymentAuthorities } from '../../../sdk/node/network/authority.js'
import { listEnv, ownProgram } from '../../../sdk/node/programs/run.js'
import { runWalled } from '../../../sdk/node/wall/wall.js'

const PROGRAM = 'certutil'
const INSTALL = 'apt-get install libnss3-tools'
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** Its entry in `GET /info`: needed only where the deployment names authorities of its own. */
export const certificateProgram = async (): Promise<Program[]> =>
  deploymentAuthorities() === ''
    ? []
    : [
        {
          name: PROGRAM,
          present: (await ownProgram(PROGRAM)) !== undefined,
          neededBy: ['system'],
          install: INSTALL,
        },
      ]

/** Where a browser is: its home folder, and one beside it that it does not see. */
export interface BrowserFolders {
  readonly folder: string
  readonly home: string
  /** An empty folder, shown to it as the workspace. */
  readonly empty: string
}

/**
 * Has a browser trust the authorities that the deployment names beside those of the system: Chromium reads none of the
 * variables, but the database of its home folder. Its file is made anew when they change.
 */
export const trustInBrowser = async (
  { place, log, signal }: Pick<Host, 'place' | 'log' | 'signal'>,
  { folder, home, empty }: BrowserFolders,
): Promise<void> => {
  const text = deploymentAuthorities()
  const mark = join(folder, 'authorities')
  const now = text === '' ? '' : createHash('sha256').update(text).digest('hex')
  if ((await readFile(mark, 'utf8').catch(() => '')) === now) return
  const database = join(home, '.pki/nssdb')
  await rm(database, { recursive: true, force: true })
  if (now === '') return rm(mark, { force: true })
  const program = await ownProgram(PROGRAM)
  if (program === undefined) {
    log.warn(
      'the browser does not trust the certificate authorities of SSL_CERT_FILE and NODE_EXTRA_CA_CERTS: '
        + `${PROGRAM} is missing (${INSTALL})`,
    )
    return
  }
  await mkdir(database, { recursive: true, mode: 0o700 })
  const spec = {
    ...{ workspace: place.workspace, data: place.data, cwd: place.workspace, hide: place.hidden, offline: true },
    env: listEnv({ HOME: home }),
    copy: { dir: empty, gitdirs: [] },
    exposed: [home],
  }
  const run = async (args: readonly string[], input?: string) => {
    const how = { signal, ...(input !== undefined && { input }) }
    const { code, stderr } = await runWalled(spec, program, ['-d', `sql:${database}`, ...args], how)
    return code === 0 ? undefined : stderr.trim().slice(0, 300)
  }
  const failures = [await run(['-N', '--empty-password'])]
  for (const [at, certificate] of (text.match(CERTIFICATE) ?? []).entries())
    failures.push(await run(['-A', '-a', '-t', 'C,,', '-n', `deployment ${at + 1}`], certificate))
  const failed = failures.find(words => words !== undefined)
  if (failed !== undefined) log.warn('the browser does not trust all authorities of the deployment', { why: failed })
  await writeAtomic(mark, now)
}
