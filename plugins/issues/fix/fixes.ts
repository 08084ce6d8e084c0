import { randomUUID } from 'node:crypto'
import { Refusal, refuse, type Context, type Host, type Input } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import type { IssuesCalls } from '../contract.js'
import type { Issues } from '../issues.js'
import type { Reporters } from '../reporters.js'
import type { StoredFix, StoredIssue } from '../stored.js'
import { folderOfReporter, type CallerView } from '../view.js'
import { fixPrompt } from './prompt.js'

type Asked = Input<IssuesCalls, 'POST /issues/{id}/fix'>

const AGAIN_MS = 10_000
const MOST_TITLE = 80

export interface FixesDeps {
  readonly host: Pick<Host, 'call'>
  readonly issues: Issues
  readonly reporters: Pick<Reporters, 'stored'>
}

/** Starts agents on issues, one at a time for each. */
export class Fixes {
  readonly #deps: FixesDeps
  readonly #turns = new KeyedMutex()

  constructor(deps: FixesDeps) {
    this.#deps = deps
  }

  /** Starts a turn, or returns that of a call just before; `isFirst`: it began now. */
  start(issue: StoredIssue, asked: Asked, view: CallerView, context: Context) {
    return this.#turns.with(issue.id, async () => {
      const before = issue.fix
      const now = Date.now()
      const repeats = before && now - before.at < AGAIN_MS && (await this.#isThere(before.conversationId))
      if (repeats) return { conversationId: before.conversationId, run: before.run, isFirst: false }
      if (before && (await this.#isRunning(before.conversationId)))
        refuse('conflict', `the conversation ${before.conversationId} works on it now`)
      const id = randomUUID().replaceAll('-', '').slice(0, 20)
      const fix: StoredFix = {
        ...{ conversationId: `fix-${id}`, messageId: `issue-fix-${id}`, run: `r-${id}`, at: now },
        resolveOnLand: asked.resolveOnLand ?? false,
      }
      await this.#deps.issues.noteFix(issue.id, fix)
      failpoint('issues.fix.noted')
      try {
        await this.#begin(issue, fix, asked, view, context)
      } catch (error) {
        await this.#deps.issues.noteFix(issue.id, before)
        throw error
      }
      return { conversationId: fix.conversationId, run: fix.run, isFirst: true }
    })
  }

  /** Forgets fixes whose conversation does not exist: the daemon ended before it began, or it was deleted. */
  async forgetUnstarted(): Promise<void> {
    for (const { id, fix } of this.#deps.issues.all)
      if (fix && !(await this.#isThere(fix.conversationId))) await this.#deps.issues.noteFix(id, undefined)
  }

  async #begin(issue: StoredIssue, fix: StoredFix, { pick, note }: Asked, view: CallerView, context: Context) {
    const { host, issues, reporters } = this.#deps
    const reporter = reporters.stored(issue.reporter)
    const [newest] = await issues.events(issue.id)
    const prompt = fixPrompt(await view.issue(issue), newest && (await view.event(newest, issue)), note)
    const folder = reporter ? folderOfReporter(reporter) : '.'
    await host.call(
      'agent.start',
      {
        ...{ conversationId: fix.conversationId, messageId: fix.messageId, run: fix.run, prompt },
        ...{ isolated: true, title: `Fix: ${issue.title}`.slice(0, MOST_TITLE).toWellFormed() },
        outsideWake: `a report of ${reporter?.label ?? 'a program'}`,
        ...(folder !== '.' && { startIn: folder }),
        ...pick,
      },
      { as: context },
    )
  }

  async #state(conversationId: string) {
    return this.#deps.host.call('agent.conversation', { id: conversationId }).catch((error: unknown) => {
      if (Refusal.from(error).reason === 'not-found') return undefined
      throw error
    })
  }

  async #isThere(conversationId: string): Promise<boolean> {
    return (await this.#state(conversationId)) !== undefined
  }

  async #isRunning(conversationId: string): Promise<boolean> {
    return (await this.#state(conversationId))?.live !== undefined
  }
}
