import { refuse } from '../../../sdk/index.js'
import type { Host } from '../../../sdk/index.js'
import type { Env } from '../../../sdk/node/programs/run.js'
import type { ResolvedText, SecretLane, SecretText } from '../../secrets/contract.js'
import type { ReferenceUser, TurnPlaceholders } from './bound-values.js'

/** Replaces references by stored values when a call of a turn is made. */
export interface References {
  /** A shell command: the values are in variables of its own. */
  command(text: string): Promise<{ readonly text: string; readonly env: Env }>
  /** A program text, or a part of a request. */
  text(text: string, lane: Exclude<SecretLane, 'shell'>): Promise<string>
}

const REFERENCE = /\{\{secret:[A-Za-z0-9_./-]+\}\}/
const MOST_DETAIL = 80

/**
 * The references of one turn. A text without any is returned unchanged, without a call.
 *
 * @param placeholders The placeholders of values that are bound to hosts; undefined: there is no proxy to fill them in.
 */
export const referencesOf = (
  host: Pick<Host, 'call' | 'serves'>,
  user: ReferenceUser,
  placeholders: () => Promise<TurnPlaceholders | undefined> = async () => undefined,
): References => {
  const ask = async (call: 'secrets.resolve' | 'secrets.resolveCommand', text: string, lane: SecretLane) => {
    const held = await placeholders()
    const asked: SecretText = {
      ...user,
      text,
      lane,
      detail: text.trim().split('\n', 1)[0]!.slice(0, MOST_DETAIL).toWellFormed(),
      ...(held && { placeholders: held.seed }),
    }
    const found =
      call === 'secrets.resolve'
        ? await host.call('secrets.resolve', asked)
        : await host.call('secrets.resolveCommand', asked)
    held?.add(found.bound ?? [], lane)
    return found
  }
  return {
    command: async text => {
      if (!REFERENCE.test(text)) return { text, env: {} }
      await assertStore(host)
      const found = await ask('secrets.resolveCommand', text, 'shell')
      return { text: resolved(found), env: found.env ?? {} }
    },
    text: async (text, lane) => {
      if (!REFERENCE.test(text)) return text
      await assertStore(host)
      return resolved(await ask('secrets.resolve', text, lane))
    },
  }
}

const assertStore = async (host: Pick<Host, 'serves'>): Promise<void> => {
  if (!(await host.serves('secrets.resolve')))
    refuse('unavailable', 'this sandbox keeps no secrets: write the command without {{secret:…}}')
}

const resolved = ({ text, unknown, names = [], refused }: ResolvedText): string => {
  if (refused !== undefined) refuse('unprocessable', refused)
  if (text !== undefined) return text
  const known = names.length > 0 ? `this turn may use ${names.join(', ')}` : 'this turn may use none'
  return refuse('unprocessable', `there is no secret ${(unknown ?? []).join(', ')}: ${known}`)
}
