import type { AdmissionFloor, SettingVerdict } from '../../settings/contract.js'
import type { Automation, GuardResult } from '../contract.js'
import { isBare, isWebchat, wornBy } from '../webchat/strangers.js'
import type { Fire } from './fire.js'
import { guardDetail } from './guard.js'

/** Whether a fire goes on to its turn. */
export type FireVerdict =
  | { readonly kind: 'go' }
  | { readonly kind: 'skip'; readonly detail: string }
  | { readonly kind: 'hold'; readonly reason: string; readonly autoRunAt?: number }

/** What fires come from, as the settings call it. */
type FireSource = keyof Omit<AdmissionFloor, 'workflow'>

/** What the checks ask. */
export interface FireChecksDeps {
  readonly now: () => number
  /** What the safety policy says about fires of a source. */
  readonly admit: (source: FireSource) => Promise<SettingVerdict>
  readonly persona: (id: string) => Promise<boolean>
  /** Why an automation must not answer visitors. */
  readonly stranger: (automation: Automation) => Promise<string | undefined>
  readonly guard: (command: string, payload: string | undefined, signal: AbortSignal) => Promise<GuardResult>
}

/** The checks between an order and its turn. */
export interface FireChecks {
  of(automation: Automation, fire: Fire, signal: AbortSignal): Promise<FireVerdict>
}

const GO: FireVerdict = { kind: 'go' }
const skip = (detail: string): FireVerdict => ({ kind: 'skip', detail })

/** Asks admission, persona, guard and holds, in this order. */
export const fireChecks = ({ now, admit, persona, stranger, guard }: FireChecksDeps): FireChecks => ({
  of: async (automation, fire, signal) => {
    const { trigger, guard: command, requireApproval, holdForSeconds } = automation
    const source = isWebchat(automation) ? 'webchat' : trigger.kind
    const floor = await admit(source)
    if (floor === 'deny') return skip(`the settings deny fires by ${source} (admission)`)
    const actsAs = wornBy(automation)
    if (actsAs !== undefined && !isBare(automation) && !(await persona(actsAs)))
      return skip(`its persona ${actsAs} is gone`)
    const wide = await stranger(automation)
    if (wide !== undefined) return skip(wide)
    if (fire.held !== undefined) return GO
    if (command !== undefined) {
      const result = await guard(command, fire.payload, signal)
      if (!result.pass) return skip(guardDetail(result))
    }
    if (fire.cause === 'hand') return GO
    if (requireApproval) return { kind: 'hold', reason: 'every fire of it waits for a person' }
    if (floor === 'hold')
      return { kind: 'hold', reason: `the settings hold fires by ${source} for a person (admission)` }
    if (holdForSeconds === undefined) return GO
    const autoRunAt = now() + holdForSeconds * 1000
    return { kind: 'hold', reason: `it waits ${holdForSeconds} s, then runs by itself`, autoRunAt }
  },
})
