import type { Card, CardReply, InTheWay, LandConflict } from '../../../plugins/agent/contract.js'
import { oneLine, plain, type Styles } from '../terminal/text.js'

/** The lines that show a card. */
export const cardLines = (card: Card, { bold, dim }: Styles): string[] => {
  if (card.kind === 'plan')
    return [
      bold('The agent asks whether to follow this plan:'),
      ...plain(card.text)
        .split('\n')
        .map(line => `  ${line}`),
    ]
  if (card.kind === 'permission') {
    const what = plain(card.title ?? card.displayName ?? card.toolName)
    return [
      bold(`The agent asks for permission: ${what}`),
      ...[card.description, card.path, card.reason].flatMap(line => (line ? [dim(`  ${plain(line)}`)] : [])),
    ]
  }
  if (card.kind === 'browser_help' || card.kind === 'terminal_help') {
    const place = card.kind === 'browser_help' ? 'browser' : 'terminal'
    return [
      bold(`The agent hands you its ${place}: ${plain(card.message)}`),
      dim(`  ${place} ${plain(card.session)}, in the console`),
    ]
  }
  if (card.kind !== 'question') return offerLines(card, bold, dim)
  return card.questions.flatMap(({ question, options, multiSelect }) => [
    bold(`The agent asks: ${plain(question)}${multiSelect ? ' (any number of these)' : ''}`),
    ...options.map(
      ({ label, description }, at) =>
        `  ${at + 1}. ${oneLine(label)}${description ? dim(`  ${plain(description)}`) : ''}`,
    ),
  ])
}

type Offer = Extract<Card, { kind: 'service_offer' | 'capability_offer' | 'payment_offer' }>

const offerLines = (card: Offer, bold: Styles['bold'], dim: Styles['dim']): string[] => {
  const { kind, offer } = card
  const [head, ...more] =
    kind === 'service_offer'
      ? [
          `run the service ${offer.name} of ${offer.publisher} for ${offer.creditsPerRun} credits`,
          offer.description,
          offer.request,
        ]
      : kind === 'capability_offer'
        ? [`connect ${offer.name}`]
        : [
            `pay $${offer.amountUsd} to ${offer.payTo}`,
            offer.url,
            offer.description,
            `${offer.assetName} on ${offer.network}; today $${offer.spentTodayUsd} of $${offer.dailyCapUsd}`,
          ]
  return [
    bold(`The agent asks to ${oneLine(head!)}`),
    ...[...more, offer.why].flatMap(line => (line ? [dim(`  ${oneLine(line)}`)] : [])),
  ]
}

/** Describes a reply in a few words. */
export const answerWords = (reply: CardReply): string => {
  if (reply.kind === 'plan') return `${reply.approve ? 'yes' : 'no'}${reply.feedback ? `, ${reply.feedback}` : ''}`
  if (reply.kind === 'permission') return `${reply.decision}${reply.feedback ? `, ${reply.feedback}` : ''}`
  if (reply.kind === 'capability_offer') return reply.connect ? 'yes' : 'no'
  if (reply.kind === 'browser_help' || reply.kind === 'terminal_help')
    return `${reply.helped ? 'done' : 'not done'}${reply.note ? `, ${reply.note}` : ''}`
  if (reply.kind !== 'question') return reply.approve ? 'yes' : 'no'
  if (reply.cancelled) return 'cancelled'
  return (
    Object.values(reply.answers ?? {})
      .flat()
      .join(', ') || 'skipped'
  )
}

/** The lines of the conflicts of a landing, path by path. */
export const conflictLines = (conflicts: readonly LandConflict[]): string[] =>
  conflicts.flatMap(({ repo, paths, clean, mainBranch }) => [
    `${oneLine(repo)}: ${
      paths.length === 0 && clean === 0
        ? 'its main checkout does not exist'
        : `${paths.length} of ${paths.length + clean} paths conflict${mainBranch ? ` on ${oneLine(mainBranch)}` : ''}`
    }`,
    ...paths.map(
      ({ path, reason, inTheWay }) =>
        `  ${oneLine(path)}: ${inTheWay ? standsThere(inTheWay) : (WHY[reason] ?? oneLine(String(reason)))}`,
    ),
  ])

const standsThere = ({ path, what }: InTheWay): string =>
  what === 'outside'
    ? 'it is a link that leads out of the workspace: have it lead inside, or removed'
    : `the workspace has ${STANDS[what] ?? oneLine(String(what))} at ${oneLine(path)}`

const STANDS: { readonly [what: string]: string } = {
  file: 'a file',
  folder: 'a folder',
  link: 'a link',
  repository: 'another repository',
  closed: 'a folder that cannot be opened',
  special: 'something that is no file',
}

const WHY: { readonly [reason: string]: string } = {
  workspace: 'your uncommitted change is in the way',
  diverged: 'the main line changed it too',
  binary: 'git cannot merge it',
}
