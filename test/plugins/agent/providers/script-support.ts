import { setTimeout as delay } from 'node:timers/promises'
import type { TurnIo, TurnRequest, UserMessage } from '../../../../plugins/agent/providers/adapter.js'
import { isCard } from '../../../../plugins/agent/cards/kinds.js'
import type { Card, CardReply, Frame, PermissionMode } from '../../../../plugins/agent/turn/frames/frames.js'
import { scriptAdapter } from '../../../../plugins/agent/providers/script/adapter.js'

const words = (text: string): UserMessage => ({ messageId: `m-${text}`, text, attachments: [] })

const DEAD = Symbol('dead')

/** The setup of a world. */
export interface Setup {
  words: string
  replies?: CardReply[]
  said?: string[]
  attended?: boolean
  mode?: PermissionMode
}

/** The engine's side of `TurnIo`, in memory; simulates a kill at the nth step. */
export class World {
  files = new Map<string, string>([['notes.txt', 'one\ntwo\n']])
  log: Frame[] = []
  state: unknown
  stateAt = 0
  steps = 0
  dieAt = Infinity
  shells: string[] = []
  saves = 0
  modes: PermissionMode[] = []
  readonly stop = new AbortController()
  readonly setup: Setup

  constructor(setup: Setup) {
    this.setup = setup
  }

  async step(): Promise<void> {
    if (++this.steps >= this.dieAt) throw DEAD
  }

  async frame(frame: Frame): Promise<void> {
    await this.step()
    this.log.push(structuredClone(frame))
  }

  request(attempt: number): TurnRequest {
    const open = this.cards.filter(
      card => !this.log.some(frame => frame.kind === 'resolved' && frame.requestId === card.requestId),
    )
    const { words, replies = [], attended = true, mode = 'bypassPermissions' } = this.setup
    const answered = open.map(card => ({ card, reply: replies[Number(card.requestId)]! }))
    for (const { card, reply } of answered) this.log.push({ kind: 'resolved', requestId: card.requestId, reply })
    return {
      conversationId: 'c-1',
      run: 'r-1',
      attempt,
      prompt: words,
      words,
      attachments: [],
      mentions: [],
      harness: 'native',
      model: 'script',
      permissionMode: mode,
      attended,
      depth: 0,
      helpers: { atOnce: 20, perTurn: 200, depth: 3 },
      ...(attempt > 1 && {
        ...(this.state !== undefined && { state: structuredClone(this.state) }),
        since: this.log.slice(this.stateAt),
        resume: { reason: open.length ? 'answered' : 'restart', replies: answered },
      }),
    }
  }

  io(): TurnIo {
    return {
      signal: this.stop.signal,
      gap: async ms => {
        if (ms) await delay(ms, undefined, { signal: this.stop.signal }).catch(() => {})
        return false
      },
      takeWords: () => this.setup.said?.splice(0).map(words) ?? [],
      waitWords: async () => this.setup.said?.splice(0, 1).map(words)[0],
      raise: async draft => {
        const requestId = String(this.cards.length)
        await this.frame({ ...draft, requestId } as Frame)
        await this.step()
        const reply = this.setup.replies?.[Number(requestId)]
        await this.frame({ kind: 'resolved', requestId, ...(reply && { reply }) })
        return reply
      },
      tool: async (name, input, id) => {
        await this.frame({ kind: 'tool_call', id, name, category: 'other', status: 'in_progress' })
        await this.step()
        const { ok, text, exit } = this.effect(name, input as never)
        const content = [{ type: 'text' as const, text: exit ? `${text}\n[exit ${exit}]` : text }]
        await this.frame({ kind: 'tool_call_update', id, status: ok ? 'completed' : 'failed', content })
        return { ok, text, content, ...(exit !== undefined && { exit }) }
      },
      permit: async () => ({ allow: true }),
      offered: async () => [],
      expose: () => Promise.reject(new Error('no programs here')),
      walled: () => Promise.reject(new Error('the interpreter starts no programs')),
      shared: async () => undefined,
      helper: async () => ({ status: 'failed', summary: 'no helpers here' }),
      stamp: async path => this.files.get(path),
      state: async value => {
        await this.step()
        this.saves++
        this.state = structuredClone(value)
        this.stateAt = this.log.length
      },
      title: () => {},
      mode: mode => {
        this.modes.push(mode)
        this.log.push({ kind: 'mode', mode })
      },
    }
  }

  effect(name: string, input: { [field: string]: string }): { ok: boolean; text: string; exit?: number } {
    const { path = '', content = '', old = '', from = '', to = '' } = input
    const file = this.files.get(path)
    switch (name) {
      case 'Write':
        this.files.set(path, content)
        break
      case 'Append':
        this.files.set(path, (file ?? '') + content)
        break
      case 'Edit':
        if (file?.split(old).length !== 2) return { ok: false, text: 'not exactly once' }
        this.files.set(path, file.split(old).join(input.new))
        break
      case 'Delete':
        if (!this.files.delete(path)) return { ok: false, text: 'no such file' }
        break
      case 'Move': {
        const moved = this.files.get(from)
        if (moved === undefined) return { ok: false, text: 'no such file' }
        this.files.delete(from)
        this.files.set(to, moved)
        break
      }
      case 'Read':
        return file === undefined ? { ok: false, text: `nothing is named ${path}` } : { ok: true, text: file }
      case 'Shell':
        this.shells.push(input.command!)
        return input.command!.startsWith('exit ')
          ? { ok: false, text: 'ended', exit: Number(input.command!.slice(5)) }
          : { ok: true, text: `ran ${input.command}\n`, exit: 0 }
    }
    return { ok: true, text: 'done' }
  }

  async run(attempt = 1): Promise<this> {
    try {
      for await (const frame of scriptAdapter.run(this.request(attempt), this.io())) await this.frame(frame)
    } catch (error) {
      if (error !== DEAD) throw error
    }
    return this
  }

  get cards(): Card[] {
    return this.log.filter(isCard)
  }

  get kinds(): string[] {
    return this.log.map(({ kind }) => kind)
  }

  get prose(): string {
    return this.log.map(frame => (frame.kind === 'delta' ? frame.text : frame.kind === 'text_end' ? '\n' : '')).join('')
  }

  find<K extends Frame['kind']>(kind: K): Extract<Frame, { kind: K }>[] {
    return this.log.filter((frame): frame is Extract<Frame, { kind: K }> => frame.kind === kind)
  }
}

/** Runs a script to its end. */
export const play = (words: string, more: Omit<Setup, 'words'> = {}) => new World({ words, ...more }).run()
/** The text of a script, block by block. */
export const prose = async (words: string, more?: Omit<Setup, 'words'>) => (await play(words, more)).prose
