import type { LoopCheck, OutputField, OutputSpec } from './contract.js'
import { loopFile, MEMORY } from './documents.js'
import { isUnverified, type StoredLoop } from './stored-loop.js'

const EXAMPLES: { readonly [type in OutputField['type']]: unknown } = {
  string: 'text',
  number: 0,
  boolean: true,
  'string[]': ['text'],
}

/** What a round is told: the loop's own words first, so that a script stays one. */
export const roundWords = (loop: StoredLoop): string => {
  const { prompt, goal, conversationId, context, output, checks, note, handed } = loop
  const words = [note, prompt, handed].filter(part => part !== undefined).join('\n\n')
  if (isUnverified(loop)) return words
  const brief = [
    ...(prompt.includes(goal) ? [] : [`## Goal\n\n${goal}`]),
    ...(context === 'fresh' ? [memoryRule(loopFile(conversationId, MEMORY))] : []),
    ...(checks.length > 0 ? [checkWords(checks)] : []),
    ...(output.kind === 'none' ? [] : [documentWords(loopFile(conversationId), output)]),
  ]
  return [words, ...brief].join('\n\n')
}

const memoryRule = (path: string): string =>
  `## Memory\n\nThis round knows nothing of earlier ones but what ${path} says. Read it first. Rewrite it last: what `
  + 'is done, what is left, what to try next.'

const checkWords = (checks: readonly LoopCheck[]): string =>
  ['## What is checked after this round', ...checks.map(checkWord)].join('\n\n')

const checkWord = (check: LoopCheck): string =>
  check.kind === 'command'
    ? `This command must exit with 0:\n\n    ${check.command.replaceAll('\n', '\n    ')}`
    : `Another model must find this true of your last message:\n\n${check.rubric}`

const documentWords = (path: string, output: OutputSpec): string => {
  const fields = output.kind === 'json' ? output.fields : []
  const data = Object.fromEntries(fields.map(({ name, type }) => [name, EXAMPLES[type]]))
  const example = {
    ...{ done: false, reason: 'why the goal is met, or what is left' },
    ...(fields.length > 0 && { data }),
  }
  const named = fields.map(
    ({ name, description, required }) => `- data.${name}${required ? '' : ' (optional)'}: ${description}`,
  )
  return [
    `## Document\n\nBefore you end, write ${path} as JSON. Say done only if the goal is met:`,
    JSON.stringify(example, undefined, 2),
    ...(named.length > 0 ? [named.join('\n')] : []),
  ].join('\n\n')
}
