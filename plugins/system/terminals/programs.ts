import type { Program } from '../../../sdk/kernel.js'
import { ownEnv, ownProgram, run } from '../../../sdk/node/programs/run.js'

const LEAST: readonly [major: number, minor: number] = [3, 2]

/** The path and version of a tmux that is new enough to run terminals. */
export const findTmux = async (): Promise<{ path: string; version: string } | undefined> => {
  const path = await ownProgram('tmux')
  if (!path) return undefined
  const { stdout } = await run(path, ['-V'], { cwd: '/', env: await ownEnv(), timeoutMs: 5_000 })
  const version = stdout
    .toString()
    .trim()
    .replace(/^tmux /, '')
  const [, major = 0, minor = 0] = /(\d+)\.(\d+)/.exec(version)?.map(Number) ?? []
  return major > LEAST[0] || (major === LEAST[0] && minor >= LEAST[1]) ? { path, version } : undefined
}

/** The program that terminals use; without it they still work, but end with the daemon. */
export const terminalPrograms = async (): Promise<Program[]> => {
  const found = await findTmux().catch(() => undefined)
  const install = `${process.platform === 'darwin' ? 'brew' : 'apt-get'} install tmux`
  return [
    {
      name: 'tmux',
      present: found !== undefined,
      ...(found && { version: found.version }),
      neededBy: ['system'],
      install,
    },
  ]
}
