import type { Host } from '../../../sdk/index.js'
import { sendPush } from '../../../sdk/node/push/send-push.js'
import { promptWords } from '../../../sdk/node/push/words.js'
import type { OpenCards } from '../cards/cards.js'
import { titleOf } from '../cards/kinds.js'
import type { Conversations } from '../conversations/conversations.js'
import type { Engine } from './engine.js'
import type { RunEnd } from './frames/frames.js'
import type { Turn } from './turn.js'

/** The dependencies of the moments. */
export interface PushMomentDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'log' | 'place' | 'signal' | 'on'>
  readonly cards: Pick<OpenCards, 'open'>
  readonly conversations: Pick<Conversations, 'find'>
  readonly live: Engine['live']
  readonly mask: (text: string) => string
}

/** A card that is answered sooner interrupts nobody. */
const PATIENCE_MS = 3_000

/** Tells people on their devices when a turn has ended and when it waits for a person. */
export class PushMoments {
  readonly #deps: PushMomentDeps

  constructor(deps: PushMomentDeps) {
    this.#deps = deps
    deps.host.on('card.raised', ({ conversationId, requestId }) => this.#raised(conversationId, requestId))
  }

  /** A turn has ended; a person who stopped it knows. */
  ended({ conversationId, message }: Pick<Turn, 'conversationId' | 'message'>, end: RunEnd): void {
    if (end !== 'completed' && end !== 'failed') return
    const { host, conversations, mask } = this.#deps
    const words = promptWords(mask(message.input.prompt))
    // Asked now: the loop may end with this round.
    const inLoop = this.#inLoop(conversationId)
    const send = async () => {
      if (await inLoop) return
      const told = { moment: 'finished', conversationId, startedBy: message.by } as const
      const text = end === 'failed' ? `Failed: ${words}` : words
      await sendPush(host, { ...told, text }, conversations.find(conversationId))
    }
    void send().catch(error => host.log.warn('telling people of a turn failed', { error: String(error) }))
  }

  /** The rounds of a loop tell nobody, its end does. */
  async #inLoop(conversationId: string): Promise<boolean> {
    const { host } = this.#deps
    return (await host.serves('loops.drives')) && (await host.call('loops.drives', { conversationId })).drives
  }

  #raised(conversationId: string, requestId: string): void {
    const { host, cards, conversations, live, mask } = this.#deps
    const raised = live(conversationId)?.live.cards.find(card => card.requestId === requestId)
    // People were told of what the last daemon raised.
    if (!raised || raised.raisedAt < Date.now() - PATIENCE_MS) return
    const tell = () => {
      const [turn, card] = [live(conversationId), cards.open(requestId)]
      if (!turn || !card) return
      const told = { moment: 'stuck', conversationId, startedBy: turn.message.by } as const
      void sendPush(host, { ...told, text: promptWords(mask(titleOf(card))) }, conversations.find(conversationId))
    }
    setTimeout(tell, PATIENCE_MS).unref()
  }
}
