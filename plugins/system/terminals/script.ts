import { visible } from '../../../sdk/node/access/redact.js'
import { inShell } from './pipe.js'

/** One program of a session. */
export interface ScriptStep {
  /** The real path of the folder it runs in. */
  readonly folder: string
  readonly program: readonly string[]
}

/** A command as a person would type it. */
const typedForm = (words: readonly string[]): string =>
  words.map(word => (/^[\w@%+=:,./-]+$/.test(word) ? word : inShell(word))).join(' ')

/**
 * The script that runs programs one after another and shows each command before it runs.
 *
 * It ends with the first that fails, or with `goOn` after the last one; its exit code is that of the last failure. It
 * waits for the running program on a signal to end, so that the program can end in its own time, and starts no
 * further one.
 */
export const scriptOf = (steps: readonly ScriptStep[], goOn: boolean): string =>
  [
    "failed=0 stopped=0; trap 'stopped=1' HUP INT TERM",
    ...steps.flatMap(({ folder, program }) => [
      `printf '%s\\n' ${inShell(`$ ${visible(typedForm(program))}`)}`,
      `[ $stopped = 0 ] || exit $failed`,
      `(cd ${inShell(folder)} && exec ${program.map(inShell).join(' ')}) || failed=$?`,
      ...(goOn ? [] : ['[ $failed = 0 ] || exit $failed']),
    ]),
    'exit $failed',
  ].join('\n')
