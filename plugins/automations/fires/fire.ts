import { randomUUID } from 'node:crypto'
import type { Origin } from '../../agent/contract.js'
import type { Automation, FireCause, HeldWake } from '../contract.js'
import { wornBy } from '../webchat/strangers.js'

/** A new id: a letter for its kind, then 80 random bits. */
export const mintedId = (letter: string): string => `${letter}-${randomUUID().replaceAll('-', '').slice(0, 20)}`

/** The message of a visitor that a fire answers. */
export interface Visit {
  readonly thread: string
  /** Its position in the thread. */
  readonly seq: number
  /** A stop of the sandbox cut the first answer. */
  readonly again?: true
}

/** What starts a fire. */
export interface FireOrder {
  readonly cause: FireCause
  /** Who started it; the sandbox itself unless set. */
  readonly by?: string
  readonly payload?: string
  /** The payload is not from this sandbox's people or files: the source of it. */
  readonly foreign?: string
  /** A message or call from outside: its turn works in a private copy. */
  readonly origin?: Origin
  readonly title?: string
  /** The time of a schedule. */
  readonly slot?: number
  /** The conversation to continue, or the time in the name of a new one. */
  readonly conversationId?: string
  readonly named?: number
  /** The key under which the sender may ask again. */
  readonly once?: string
  /** The held wake that it was: neither guard nor hold is asked again. */
  readonly held?: string
  /** The agent whose event it is: a newer event of it replaces one that waits. */
  readonly agentId?: string
  /** Its answer goes to a visitor's thread. */
  readonly visit?: Visit
  /** A person said yes: a budget that asks first does not hold it. */
  readonly approved?: true
}

/** A fire as it is stored until it ended: a restart finishes it, repeats it once, or records how it ended. */
export interface Fire extends FireOrder {
  readonly id: string
  readonly automationId: string
  readonly at: number
  /** `queued` waits behind another; `checking` asks admission and guard; `starting` may have started its turn. */
  readonly phase: 'queued' | 'checking' | 'starting' | 'running'
  readonly conversationId: string
  readonly run: string
  readonly messageId: string
  readonly startedAt?: number
  /** A restart repeated it. */
  readonly repeated?: true
}

/** A held wake as it is stored. */
export interface StoredWake {
  readonly wake: HeldWake
  /** The fire that it was. */
  readonly fire: string
  readonly order: FireOrder
}

const NAME = 40

/** The name of the conversation that a fire opens. */
export const conversationName = (id: string, at: number, attempt: number): string =>
  `a-${id.slice(0, NAME)}-${at.toString(36)}${attempt > 1 ? `-${attempt}` : ''}`

/** The id of the fire of one time of a schedule. */
export const slotFireId = (id: string, slot: number): string => `${id}@${slot}`

/** What an automation wants of its turns. */
export const choiceOf = (automation: Automation) => {
  const { agent, account, harness, model, allowedTools } = automation
  const actsAs = wornBy(automation)
  return {
    ...(agent !== undefined && { agent }),
    ...(account !== undefined && { account }),
    ...(harness !== undefined && { harness }),
    ...(model !== undefined && { model }),
    ...(actsAs !== undefined && { actsAs }),
    ...(allowedTools && { allowedTools: [...allowedTools] }),
  }
}
