import { refuse } from '../../../sdk/index.js'
import type { Host } from '../../../sdk/index.js'
import type { Env } from '../../../sdk/node/programs/run.js'
import type { ResolvedText, SecretLane } from '../../secrets/contract.js'

/** Puts stored values in place of references as a call of a turn leaves. */
export interface References {
  /** A line of the shell: the values stand in variables of its own. */
  command(text: string): Promise<{ readonly text: string; readonly env: Env }>
  /** A program text, or a part of a request. */
  text(text: string, lane: Exclude<SecretLane, 'shell'>): Promise<string>
}

/** Who uses the values. */
export interface ReferenceUser {
  readonly conversationId: string
  readonly run: string
  readonly persona?: string
  /** The connections whose fields may be used; left out: all. */
  readonly capabilities?: string[]
}

const REFERENCE = /\{\{secret:[A-Za-z0-9_./-]+\}\}/
const MOST_DETAIL = 80

/** The references of one turn. A text without any is as it is, and nobody is asked. */
export const referencesOf = (host: Pick<Host, 'call' | 'serves'>, user: ReferenceUser): References => {
  const asked = (text: string, lane: SecretLane) => ({
    ...user,
    text,
    lane,
    detail: text.trim().split('\n', 1)[0]!.slice(0, MOST_DETAIL).toWellFormed(),
  })
  return {
    command: async text => {
      if (!REFERENCE.test(text)) return { text, env: {} }
      await assertStore(host)
      const found = await host.call('secrets.resolveCommand', asked(text, 'shell'))
      return { text: resolved(found), env: found.env ?? {} }
    },
    text: async (text, lane) => {
      if (!REFERENCE.test(text)) return text
      await assertStore(host)
      return resolved(await host.call('secrets.resolve', asked(text, lane)))
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
