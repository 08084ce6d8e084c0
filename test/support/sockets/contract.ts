import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests, Socket } from '../../../sdk/contract.js'

/** A text to send back. */
export interface SayFrame {
  type: 'say'
  text: string
}

/** Asks for a number of frames of some size. */
export interface PourFrame {
  type: 'pour'
  frames: number & tags.Type<'uint32'>
  bytes: number & tags.Type<'uint32'>
}

/** Asks for the end of the socket: normal, by a refusal, or by an error. */
export interface EndFrame {
  type: 'end'
  how: 'done' | 'forbidden' | 'bug'
}

/** A text as received, and its sender. */
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

/** Sockets that echo. */
export interface Echo {
  /** Echo every frame. */
  'GET /echo/by-ticket'(input: {
    session: string
    ticket: string
  }): Socket<SayFrame | PourFrame | EndFrame, HeardFrame | DropFrame>
  /** Echo every frame of a signed-in person. */
  'GET /echo/{room}'(input: {
    room: string
    times?: number & tags.Type<'uint32'>
  }): Socket<SayFrame | PourFrame | EndFrame, HeardFrame | DropFrame>
  /** Return the number of frames requested since the start, and of open sockets. */
  'GET /echo-count'(): { drops: number; open: number }
}

export const echo: Contract<Echo> = {
  schema: () => typia.json.application<Echo>(),
  request: typia.misc.createValidatePrune<Requests<Echo>>(),
  reply: () => typia.createValidate<Replies<Echo>>(),
}
