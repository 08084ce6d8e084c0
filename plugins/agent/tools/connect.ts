import { done, failed, tool } from './tool.js'

const NOBODY = 'nobody watches this turn, so nobody can connect anything: raise a need and end your turn'
const UNFINISHED = 'was not connected within 15 minutes: go on without it, or raise a need for it'

/** Offers a person to connect something of the catalogue, and waits until it is connected. */
export const offerToConnect = tool('Connect', {
  category: 'other',
  describe: ({ card }) => ({ target: card }),
  run: async ({ card: id, why }, { person, connecting, signal }) => {
    if (!person.attends) return failed(NOBODY)
    const cards = await connecting.cards()
    const card = cards.find(each => each.id === id)
    if (!card) return failed(`there is no card ${id}; expected one of ${cards.map(each => each.id).join(', ')}`)
    const { name, available, reason, singleton, instances } = card
    if (!available) return failed(`${name} cannot be connected here: ${reason ?? 'this machine cannot serve it'}`)
    if (singleton && instances[0] !== undefined) return done(`${name} is connected already, as ${instances[0]}`)
    const offer = { card: id, name, why }
    const reply = await person.ask({ kind: 'capability_offer', offer: { ...offer, connected: instances } }, offer)
    if (reply?.kind !== 'capability_offer') return failed('nobody answered')
    if (!reply.connect) return failed(`the person does not want ${name} to be connected`)
    const connection = await connecting.finished(reply.requestId, signal)
    if (connection === undefined) return failed(`${name} ${UNFINISHED}`)
    return done(`${name} is connected as ${connection}: what it gives you is there from your next turn`)
  },
})
