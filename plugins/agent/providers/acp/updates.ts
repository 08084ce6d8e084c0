import type { Command, Frame, TodoItem } from '../../turn/frames/frames.js'
import type { AgentCalls } from './calls.js'
import { countOf, fieldsOf, lineField, listOf, choiceField, textField } from './outside.js'

const PIECE = 64 * 1024
/** An embedded file beyond this many characters is cut. */
const MOST_RESOURCE = 256 * 1024
const MOST_PLAN = 64 * 1024
const MOST_ITEMS = 200
const STATUSES = ['pending', 'in_progress', 'completed'] as const satisfies TodoItem['status'][]

/** Converts the updates of a program in one turn into frames. */
export class Updates {
  readonly #calls: AgentCalls
  #prose: { readonly message: unknown } | undefined
  /** The text since `takeSaid` was last called, for a plan. */
  #said = ''
  #cost: number | undefined
  /** The number of received updates. */
  count = 0

  constructor(calls: AgentCalls) {
    this.#calls = calls
  }

  /** The cost of the session so far in US dollars, if the program reports it. */
  get costUsd(): number | undefined {
    return this.#cost
  }

  /** Returns the text since the last call. */
  takeSaid(): string {
    const said = this.#said
    this.#said = ''
    return said
  }

  /** Ends the block of prose that is open. */
  close(): Frame[] {
    if (!this.#prose) return []
    this.#prose = undefined
    return [{ kind: 'text_end' }]
  }

  /** The frames of an update; none if it has nothing to show. */
  heard(update: { readonly [name: string]: unknown }): Frame[] {
    this.count++
    switch (update.sessionUpdate) {
      case 'agent_message_chunk':
        return this.#words(update)
      case 'agent_thought_chunk':
        return [...this.close(), ...pieces(wordsOf(update.content)).map(text => ({ kind: 'thinking' as const, text }))]
      case 'tool_call':
      case 'tool_call_update':
        return [...this.close(), ...this.#calls.heard(update)]
      case 'plan':
        return [{ kind: 'todos', items: listOf(update.entries, MOST_ITEMS).flatMap(todoOf) }]
      case 'available_commands_update':
        return [{ kind: 'commands', items: listOf(update.availableCommands, MOST_ITEMS).flatMap(commandOf) }]
      case 'usage_update':
        return this.#usage(update)
      default:
        return []
    }
  }

  #words({ content, messageId }: { readonly [name: string]: unknown }): Frame[] {
    const text = wordsOf(content)
    if (!text) return []
    const frames = this.#prose && this.#prose.message !== messageId ? this.close() : []
    this.#prose = { message: messageId }
    if (this.#said.length < MOST_PLAN) this.#said = (this.#said + text).slice(0, MOST_PLAN).toWellFormed()
    return [...frames, ...pieces(text).map(piece => ({ kind: 'delta' as const, text: piece }))]
  }

  #usage({ used, size, cost }: { readonly [name: string]: unknown }): Frame[] {
    const { amount, currency } = fieldsOf(cost)
    if (currency === 'USD' && typeof amount === 'number' && Number.isFinite(amount) && amount >= 0) this.#cost = amount
    const [tokens, contextWindow] = [countOf(used), countOf(size)]
    return tokens === undefined || contextWindow === undefined ? [] : [{ kind: 'context_usage', tokens, contextWindow }]
  }
}

/** The text of a block; an embedded text file is shown whole, a link by its name. */
const wordsOf = (content: unknown): string => {
  const { type, text, name, resource } = fieldsOf(content)
  if (type === 'text' && typeof text === 'string') return text.toWellFormed()
  if (type === 'resource') return textField(fieldsOf(resource).text, MOST_RESOURCE) ?? ''
  return type === 'resource_link' ? `[${lineField(name, 200) ?? ''}]` : ''
}

const pieces = (text: string): string[] => {
  const found: string[] = []
  for (let at = 0; at < text.length; at += PIECE) found.push(text.slice(at, at + PIECE).toWellFormed())
  return found
}

const todoOf = (entry: unknown): TodoItem[] => {
  const { content, status } = fieldsOf(entry)
  const text = lineField(content, 1000)
  return text ? [{ content: text, status: choiceField(status, STATUSES) ?? 'pending' }] : []
}

const commandOf = (command: unknown): Command[] => {
  const { name, description, input } = fieldsOf(command)
  const plain = lineField(name, 80)?.replace(/^[/$@]+/, '')
  const hint = lineField(fieldsOf(input).hint, 200)
  return plain ? [{ name: plain, description: textField(description, 500) ?? '', ...(hint && { hint }) }] : []
}
