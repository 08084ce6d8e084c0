import { cleanOutput } from '../../../sdk/node/outputs/clean.js'
import { chosenCleaners } from '../../../sdk/node/outputs/catalogue.js'
import { nameOfCommand, programsOf } from '../../../sdk/node/outputs/commands.js'
import type { Log } from '../../../sdk/index.js'
import type { Settings } from '../../settings/contract.js'
import { isHeldOut } from '../briefing/arms.js'
import { MOST_READ } from './limited-result.js'
import type { OutputLedger } from './output-ledger.js'
import type { WholeOutputs } from './whole-outputs.js'

/** What a command printed, and what it was; without a command it was a program of the agent's own. */
export interface CommandOutput {
  readonly output: string
  readonly command?: string
}

/** An output for a model, and the file with the whole of it where something is left out. */
export interface ShortOutput {
  readonly text: string
  readonly whole?: string
}

/** Shortens the output of a command for a model; the whole one if nothing is gained. */
export type ShortenOutput = (command: CommandOutput) => Promise<ShortOutput>

/** What the shortening of a turn's outputs needs. */
export interface ShortenDeps {
  readonly conversationId: string
  readonly run: string
  readonly whole: Pick<WholeOutputs, 'keep'>
  readonly ledger: Pick<OutputLedger, 'add'>
  readonly log: Pick<Log, 'warn'>
  /** Replaces stored values: what is written for later holds none. */
  readonly mask: (text: string) => string
}

/** Shortening that saves less is not worth a file and a sentence. */
const LEAST_SAVED = 400

/** Shortens the outputs of a turn as the settings say; undefined: they say not to. */
export const shortenOutputs = (
  { outputCleaners, outputHoldout }: Pick<Settings, 'outputCleaners' | 'outputHoldout'>,
  { conversationId, run, whole, ledger, log, mask }: ShortenDeps,
): ShortenOutput | undefined => {
  const chosen = chosenCleaners(outputCleaners)
  if (!('ids' in chosen) || chosen.ids.size === 0) return undefined
  let nth = 0
  return async ({ output, command }) => {
    const heldOut = isHeldOut('output', `${run}:${++nth}`, outputHoldout)
    const programs = command === undefined ? undefined : programsOf(command)
    const name = programs ? nameOfCommand(programs) : 'a program of the agent'
    const kept = (emitted: string, saved: ReadonlyMap<string, number>, whole?: string): ShortOutput => {
      ledger.add({
        ...{ at: Date.now(), command: name, heldOut, saved },
        rawCharacters: Math.min(output.length, MOST_READ),
        emittedCharacters: Math.min(emitted.length, MOST_READ),
      })
      return { text: emitted, ...(whole !== undefined && { whole }) }
    }
    const none: ReadonlyMap<string, number> = new Map()
    if (heldOut || output.length < LEAST_SAVED) return kept(output, none)
    const { text, saved } = cleanOutput(output, programs, chosen.ids)
    if (output.length - text.length < LEAST_SAVED) return kept(output, none)
    try {
      const path = await whole.keep(conversationId, mask(output))
      const gap = text === '' || text.endsWith('\n') ? '' : '\n'
      return kept(`${text}${gap}${note(output, text, saved, path)}`, saved, path)
    } catch (error) {
      // What nobody could look up later is not left out.
      log.warn('the whole output of a command could not be kept', { run, error: String(error) })
      return kept(output, none)
    }
  }
}

const note = (output: string, text: string, saved: ReadonlyMap<string, number>, path: string): string => {
  const by = [...saved].sort(([, one], [, other]) => other - one).map(([id]) => id)
  return (
    `[shortened by ${output.length - text.length} of ${output.length} characters (${by.join(', ')}); lines that tell `
    + `of errors are all here. The whole output: Read ${path}]\n`
  )
}
