import { execFile, execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { project } from '../support/browser/page.js'

const run = promisify(execFile)
const git = (...args: string[]): string => execFileSync('git', args, { cwd: project, encoding: 'utf8', stdio: 'pipe' })

/** Packs the project into a folder, as it is built. */
export const packInto = async (from: string, to: string): Promise<void> => {
  const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', to]
  await run('npm', args, { cwd: from, env: { ...process.env, npm_config_update_notifier: 'false' } })
}

/** Why the package of the commit before cannot be built here; false: it can. */
export const noPackageBefore = (): string | false => {
  try {
    git('rev-parse', '--verify', '--quiet', 'HEAD~1')
  } catch {
    return 'this copy of the project has no commit before'
  }
  const changed = git('diff', '--name-only', 'HEAD~1', 'HEAD', '--', 'package-lock.json')
  return changed === '' ? false : 'the commit before needs other packages than are installed here'
}

/** Builds the program of the commit before, with the validators that did not change, and packs it into a folder. */
export const packBefore = async (to: string): Promise<void> => {
  const from = mkdtempSync(join(realpathSync(tmpdir()), 'before-'))
  try {
    const archive = git('rev-parse', 'HEAD~1').trim()
    execFileSync('sh', ['-c', `git archive '${archive}' | tar -x -C '${from}'`], { cwd: project })
    symlinkSync(join(project, 'node_modules'), join(from, 'node_modules'))
    mkdirSync(join(from, 'dist'))
    cpSync(join(project, 'dist/.validators'), join(from, 'dist/.validators'), { recursive: true })
    await run(process.execPath, ['.ci/build.mjs', 'program'], { cwd: from })
    await packInto(from, to)
  } finally {
    rmSync(from, { recursive: true, force: true })
  }
}
