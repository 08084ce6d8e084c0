import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests, Socket } from '../../../sdk/contract.js'

/** Words to be said again. */
export interface SayFrame {
  type: 'say'
  text: string
}

/** A wish for frames of some size. */
export interface PourFrame {
  type: 'pour'
  frames: number & tags.Type<'uint32'>
  bytes: number & tags.Type<'uint32'>
}

/** A wish for an end: a quiet one, a refusal, or a fault. */
export interface EndFrame {
  type: 'end'
  how: 'done' | 'forbidden' | 'bug'
}

/** Words as they were heard, and who said them. */
export interface HeardFrame {
  type: 'heard'
  text: string
  by: string
}

/** One of many. */
export interface DropFrame {
  type: 'drop'
  at: number & tags.Type<'uint32'>
  text: string
}

/** Sockets that say what they hear. */
export interface Echo {
  /** Say everything again. */
  'GET /echo/by-ticket'(input: {
    session: string
    ticket: string
  }): Socket<SayFrame | PourFrame | EndFrame, HeardFrame | DropFrame>
  /** Say everything again to a signed-in person. */
  'GET /echo/{room}'(input: {
    room: string
    times?: number & tags.Type<'uint32'>
  }): Socket<SayFrame | PourFrame | EndFrame, HeardFrame | DropFrame>
  /** Tell how many frames were asked for since the start, and how many sockets are open. */
  'GET /echo-count'(): { drops: number; open: number }
}

export const echo: Contract<Echo> = {
  schema: () => typia.json.application<Echo>(),
  request: typia.misc.createValidatePrune<Requests<Echo>>(),
  reply: () => typia.createValidate<Replies<Echo>>(),
}
