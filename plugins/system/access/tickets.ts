import { type Handlers, type Host, refuse } from '../../../sdk/index.js'
import type { TicketCalls } from './tickets-contract.js'

/**
 * Mints tickets for people.
 *
 * @param hasBundle Whether there is a bundle of that name.
 */
export const ticketCalls = (
  host: Pick<Host, 'call'>,
  hasBundle: (bundle: string) => boolean,
): Handlers<TicketCalls> => ({
  'POST /system/ws-ticket': async ({ for: purpose, name }, context) => {
    const { role } = context.caller
    if (purpose === 'bundle') {
      if (role !== 'owner') refuse('forbidden', `a bundle is downloaded by the owner, found role ${role}`)
      if (name === undefined) {
        return refuse('invalid', 'name: expected the name of a bundle, found nothing', {
          errors: [{ path: 'name', expected: 'the name of a bundle' }],
        })
      }
      if (!hasBundle(name)) refuse('not-found', `no bundle is named ${name}`)
    } else if (purpose !== 'events' && role !== 'owner' && role !== 'maintainer') {
      refuse('forbidden', `a ticket for a terminal or browser needs role maintainer, found role ${role}`)
    }
    return host.call(
      'kernel.ticket.mint',
      { ...(purpose && { purpose }), ...(name !== undefined && { name }) },
      { as: context },
    )
  },
})
