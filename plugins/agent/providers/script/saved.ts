import type { TurnRequest } from '../adapter.js'
import type { PermissionMode } from '../../turn/frames/frames.js'

/** What is saved after every command: enough to go on with the first one that is not finished. */
export interface Saved {
  readonly version: 1
  /** The command in hand, and how often it was done. */
  readonly at: number
  readonly done: number
  readonly answer: string
  readonly exit: string
  readonly out: string
  readonly words: string
  /** Words heard that no `wait words` has taken. */
  readonly heard: readonly string[]
  readonly mode: PermissionMode
  /** Characters said and thought. */
  readonly spoken: number
  readonly usage?: { readonly input: number; readonly output: number; readonly costUsd?: number }
  /** Tokens of context in use, as last told. */
  readonly context?: number
  /** When the wait in hand ends. */
  readonly until?: number
  /** The call in hand that must not have its effect twice, and what the paths it changes held before it. */
  readonly intent?: { readonly id: string; readonly stamps: readonly string[] }
}

/** Whether this interpreter saved a state. */
export const isSaved = (state: unknown): state is Saved =>
  typeof state === 'object' && state !== null && (state as Partial<Saved>).version === 1

/** Where a script stands: at its beginning, or where it was when it was last saved. */
export const savedOf = ({ state, permissionMode }: TurnRequest): Saved =>
  isSaved(state)
    ? state
    : {
        version: 1,
        at: 0,
        done: 0,
        spoken: 0,
        mode: permissionMode,
        heard: [],
        answer: '',
        exit: '',
        out: '',
        words: '',
      }
