import type { tags } from 'typia'
import type { Millis } from '../../../sdk/types.js'

/** What a ticket gives access to: one of the sockets, the download of a bundle, or the sandbox's events. */
export type TicketPurpose = 'terminal' | 'browser' | 'bundle' | 'events'

/** A ticket, and until when it is good. */
export interface MintedTicket {
  ticket: string
  expiresAt: Millis
}

/** Credentials for clients that cannot send headers. */
export interface TicketCalls {
  /**
   * Mint a ticket for the socket of a terminal or browser, the download of a bundle, or the events of the sandbox.
   *
   * It goes in the query field `ticket`. Without `for` it opens one socket of either kind within 30 s; a bundle's is
   * good for an hour and any number of ranges. One for `events` is good for 12 hours and any number of `GET
   * /events?ticket=…`, for a browser's `EventSource`, which cannot set headers and reconnects by itself; every
   * signed-in person may get one. `name` binds it to one session or bundle, and a bundle must be named. Role and areas
   * are checked again when it is used. The ticket is in this answer only; 32 of one person may be unused at a time.
   *
   * - 400: a ticket for a bundle without its name
   * - 403: the caller is not a signed-in person, or not the owner for a bundle
   * - 404: no such bundle
   * - 429: 32 tickets are unused
   */
  'POST /system/ws-ticket'(input: {
    for?: TicketPurpose
    name?: string & tags.MinLength<1> & tags.MaxLength<200>
  }): MintedTicket
}
