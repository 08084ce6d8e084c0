import type { FastModeFrame } from '../../turn/frames/frames.js'
import type { TurnRequest } from '../adapter.js'
import type { ModelAnswer } from './answer.js'

/** Whether answers come in the fast mode that a turn asked for, told when that changes. */
export class FastMode {
  readonly #asked: boolean
  #state: FastModeFrame['state'] | undefined

  constructor({ fast = false, depth }: Pick<TurnRequest, 'fast' | 'depth'>) {
    this.#asked = fast && depth === 0
  }

  *told({ fast }: ModelAnswer): Generator<FastModeFrame> {
    const state = fast ? 'on' : 'off'
    if (!this.#asked || state === this.#state) return
    this.#state = state
    const reason =
      fast === undefined ? 'the server does not say that it answered faster' : 'it answered at its usual speed'
    yield { kind: 'fast_mode', state, ...(state === 'off' && { reason }) }
  }
}
