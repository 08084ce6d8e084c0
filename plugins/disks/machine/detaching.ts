import { readdir, readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { needProgram, ownEnv, run } from '../../../sdk/node/programs/run.js'
import { readMountTable } from './mount-table.js'

const LOOK_MS = 50
const CARRIERS: ReadonlySet<string> = new Set(['sshfs', 'rclone', 'mount.davfs'])

/** Whether something is mounted at a folder. */
export const isMounted = async (folder: string): Promise<boolean> => (await readMountTable()).has(folder)

/**
 * Takes a mount off, and answers what the program said when it is still there after `withinMs`. The program is not
 * waited for: it may hang on a server that does not answer.
 *
 * @param at `once`: detach it although it is in use; processes keep their open files.
 */
export const detach = async (folder: string, withinMs: number, at?: 'once'): Promise<string | undefined> => {
  let said = ''
  let over = false
  const superuser = process.getuid?.() === 0
  const [program, args] = superuser
    ? (['umount', at ? ['-l', '-i', '--', folder] : ['--', folder]] as const)
    : (['fusermount3', ['-u', ...(at ? ['-z'] : []), '--', folder]] as const)
  const options = { cwd: '/', env: await ownEnv({ LC_ALL: 'C' }), maxBytes: 65_536 }
  const ended = run(await needProgram(program), args, options).then(
    ({ stderr, code }) => {
      said = stderr.trim() || (code === 0 ? '' : `${program} ended with exit code ${code}`)
      over = true
    },
    (error: unknown) => {
      said = String(error)
      over = true
    },
  )
  const late = Date.now() + withinMs
  for (;;) {
    // Before the look: the mount may go between the look and the end of the program.
    const ranOut = over || Date.now() > late
    const gone = !(await isMounted(folder))
    // davfs2 sends the last files after its mount is gone, and umount waits for that.
    if (gone && (over || at)) return undefined
    if (ranOut) return gone ? undefined : said || 'it did not answer in time'
    await Promise.race([ended, delay(LOOK_MS)])
  }
}

/** Ends the carriers that were started for a folder, such as by a daemon that was killed meanwhile. */
export const endCarriers = async (folder: string): Promise<void> => {
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0')
    if (!CARRIERS.has(basename(words[0] ?? '')) || !words.includes(folder)) continue
    try {
      process.kill(Number(pid), 'SIGTERM')
    } catch {
      // It has ended.
    }
  }
}
