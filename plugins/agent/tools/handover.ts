import type { CardReply } from '../turn/frames/frames.js'
import { done, failed, tool } from './tool.js'

const NOBODY = 'nobody watches this turn, so nobody can help: raise a need and end your turn'
const GONE = 'nobody helped: the turn went on, or what was handed over was closed'

/** Hands the browser or a terminal to the person who watches, and waits until they are done. */
export const handOver = tool('Handover', {
  category: 'other',
  describe: ({ surface, message }) => ({ target: `${surface}: ${message}`.slice(0, 200) }),
  run: async ({ surface, message }, { person, browser, terminal }) => {
    if (!person.attends) return failed(NOBODY)
    if (surface === 'browser') {
      const found = await browser.session()
      if (!found) return failed('no browser is open to hand over: open a page with Browser first')
      const { name: session, server: account } = found
      return outcome(await person.ask({ kind: 'browser_help', session, account, message }))
    }
    const session = await terminal.open()
    try {
      return outcome(await person.ask({ kind: 'terminal_help', session, message }))
    } finally {
      await terminal.close()
    }
  },
})

const outcome = (reply: CardReply | undefined) => {
  if (reply?.kind !== 'browser_help' && reply?.kind !== 'terminal_help') return failed(GONE)
  const note = reply.note ? `: ${reply.note}` : ''
  return reply.helped ? done(`the person has done it${note}`) : failed(`the person could not do it${note}`)
}
