import { stat } from 'node:fs/promises'
import { refuse } from '../../sdk/index.js'
import { codeOf } from '../../sdk/node/files/paths.js'
import { ownEnv, run } from '../../sdk/node/programs/run.js'
import type { CliCommand } from './contract.js'
import { cliLineOf } from './jobs/cli-lines.js'

/** What the program says of itself. */
export interface ProgramFacts {
  readonly version: string
  readonly commands: CliCommand[]
}

/** The program, and what it says of itself. */
export interface OwnProgram {
  readonly file: string
  readonly commands: Pick<ProgramCommands, 'facts'>
}

const ASK_MS = 30_000
const MISSING =
  'the program sandbox is missing from this installation: install the sandbox again (npm install -g, or npm ci)'
/** Flags that would lead the program to another daemon, or another folder. */
const ELSEWHERE = new Set(['data', 'workspace', 'config', 'store', 'host', 'port', 'url', 'token', 'token-file'])

/** Asks the program what it can do; what it said is kept until its file changes. */
export class ProgramCommands {
  readonly #file: string
  #known: { readonly stamp: string; readonly facts: Promise<ProgramFacts> } | undefined

  constructor(file: string) {
    this.#file = file
  }

  /** Refuses with 501 where the program is missing. */
  async facts(): Promise<ProgramFacts> {
    const found = await stat(this.#file).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return refuse('missing-program', MISSING)
      throw error
    })
    const stamp = `${found.ino} ${found.size} ${found.mtimeMs}`
    if (this.#known?.stamp !== stamp) {
      const facts = this.#ask()
      this.#known = { stamp, facts }
      facts.catch(() => (this.#known = undefined))
    }
    return this.#known.facts
  }

  async #ask(): Promise<ProgramFacts> {
    const ask = async (command: string) => {
      const options = { cwd: '/', env: await ownEnv(), timeoutMs: ASK_MS }
      const { code, stdout, stderr } = await run(process.execPath, [this.#file, command, '--json'], options)
      const result = stdout
        .toString()
        .split('\n')
        .map(cliLineOf)
        .find(({ kind }) => kind === 'result')
      if (code !== 0 || !result) return refuse('dependency', `sandbox ${command} failed: ${stderr.slice(-500).trim()}`)
      return result as unknown as { readonly version: string; readonly commands: CliCommand[] }
    }
    const [{ version }, { commands }] = await Promise.all([ask('version'), ask('commands')])
    return { version, commands }
  }
}

/** The listed command that arguments run; refuses those that nobody may run here. */
export const listedCommand = (commands: readonly CliCommand[], args: readonly string[]): CliCommand => {
  if (args.some(arg => arg.includes('\0')))
    refuse('invalid', 'args: expected texts without NUL', { errors: [{ path: 'args', expected: 'texts without NUL' }] })
  const found = commands.find(each => each.args.every((word, at) => args[at] === word))
  if (!found) {
    const names = commands.map(each => each.args.join(' ')).join(', ')
    return refuse(
      'unprocessable',
      `expected one of the commands ${names}, found ${args.slice(0, 2).join(' ').slice(0, 80)}`,
    )
  }
  if (found.run === 'apply') refuse('unprocessable', `${found.args.join(' ')} is run by POST /cli/apply alone`)
  for (const arg of args) {
    const [, flag = ''] = /^--([^=]+)/.exec(arg) ?? []
    if (ELSEWHERE.has(flag)) refuse('unprocessable', `--${flag} would lead the program elsewhere: leave it out`)
    if (found.args[0] === 'call' && /^[^=:]+=@/.test(arg))
      refuse('unprocessable', `${arg.slice(0, 60)} names a file, which no run reads: give the value itself`)
  }
  return found
}

/** Arguments as the activity record has them: without the values that a call was given. */
export const recordedArgs = (args: readonly string[]): string[] =>
  args[0] === 'call' ? args.map(arg => /^([^=:]+)(?::=|=)/.exec(arg)?.[1] ?? arg) : [...args]
