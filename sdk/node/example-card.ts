/** The conversation of the examples in the published document. */
export const EXAMPLE_CONVERSATION = 'cart-total'

/** Its newest run. */
export const EXAMPLE_RUN = 'r-670480f8a7444681b0a0'

/** Its card on the board after the turn. */
export const EXAMPLE_CARD = {
  id: EXAMPLE_CONVERSATION,
  title: 'Add up the cart',
  status: 'ready',
  provider: 'script',
  harness: 'native',
  model: 'script',
  openedBy: 'ada@example.org',
  lastBy: 'ada@example.org',
  branch: `agent/${EXAMPLE_CONVERSATION}`,
  base: 'd561808ea2',
  run: EXAMPLE_RUN,
  lastEnd: 'completed',
  attention: {
    plan: false,
    question: false,
    permission: false,
    help: false,
    service: false,
    capability: false,
    payment: false,
    conflict: false,
  },
  updatedAt: 1795384993114,
  turns: 1,
  toolUses: 1,
  diff: { files: 1, insertions: 1, deletions: 1 },
} as const

/** Its card in the archive, after the work landed. */
export const EXAMPLE_ARCHIVED_CARD = { ...EXAMPLE_CARD, status: 'landed', archivedAt: 1795384994422 } as const
