import { readdirSync, readFileSync } from 'node:fs'

/** The command lines of all processes of this machine, their words separated by NUL. */
export const runningCommands = (): string[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(pid => {
      try {
        return [readFileSync(`/proc/${pid}/cmdline`, 'utf8')]
      } catch {
        return []
      }
    })
