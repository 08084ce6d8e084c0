import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '../../../sdk/client.js'
import { Refusal } from '../../../sdk/refusal.js'
import { inGit, type RunningDaemon } from '../../support/daemon.js'
import type { Dice } from './dice.js'
import type { World } from './driver.js'
import type { Token } from './model.js'
import type { Place } from './whole.js'

/** Changes tokens and settings, and occasionally commits to the main line. */
export class Office {
  readonly #place: Place
  readonly #world: World
  readonly #dice: Dice
  readonly #tokens: Token[] = []
  /** The possible values of the setting: the last acknowledged one, and one in flight. */
  #goesOn = [true]
  #nth = 0

  constructor(place: Place, world: World, dice: Dice) {
    this.#place = place
    this.#world = world
    this.#dice = dice
  }

  /** Changes tokens and settings until the daemon is killed. */
  async drive(daemon: RunningDaemon): Promise<void> {
    try {
      for (;;) {
        await new Promise(resolve => setTimeout(resolve, this.#dice.below(120)))
        await this.#step(daemon)
      }
    } catch {
      // The daemon was killed: requests in flight are resolved after the next start.
    }
  }

  async #step({ once: client }: RunningDaemon): Promise<void> {
    const { counts } = this.#world
    const what = this.#dice.weighed({ mint: 4, revoke: 3, settings: 2 })
    counts.set(what, (counts.get(what) ?? 0) + 1)
    if (what === 'settings') {
      const autoResumeOnRestart = this.#dice.chance(0.6)
      const before = this.#goesOn
      this.#goesOn = [...new Set([...before, autoResumeOnRestart])]
      await client.call('POST /settings/patch', { set: { autoResumeOnRestart } })
      this.#goesOn = [autoResumeOnRestart]
      return
    }
    const live = this.#tokens.filter(({ state }) => state === 'minted')
    const token = live[this.#dice.below(live.length)]
    if (what === 'revoke' && token?.id) {
      token.state = 'going'
      await client.call('DELETE /system/control/tokens/{id}', { id: token.id })
      token.state = 'revoked'
      return
    }
    if (live.length > 20) return
    const fresh: Token = { label: `t${this.#nth++}`, state: 'unsure' }
    this.#tokens.push(fresh)
    const { id, token: text } = await client.call('POST /system/control/tokens', { label: fresh.label, scope: 'read' })
    Object.assign(fresh, { id, text, state: 'minted' })
  }

  /** The possible values of the setting now. */
  settings(): readonly boolean[] {
    return this.#goesOn
  }

  /** The faults in tokens and settings after a start; resolves the requests in flight. */
  async faults({ client, url }: RunningDaemon): Promise<string[]> {
    const { autoResumeOnRestart } = (await client.call('GET /settings')) as { autoResumeOnRestart?: boolean }
    const faults = this.#goesOn.includes(autoResumeOnRestart === true)
      ? []
      : [`the setting is ${autoResumeOnRestart}, expected ${this.#goesOn.join(' or ')}`]
    this.#goesOn = [autoResumeOnRestart === true]
    const { tokens: rows } = await client.call('GET /system/control/tokens')
    for (const token of this.#tokens) {
      const row = rows.find(({ label }) => label === token.label)
      if (token.state === 'unsure') Object.assign(token, row ? { id: row.id, state: 'minted' } : { state: 'revoked' })
      if (token.state === 'going') token.state = row ? 'minted' : 'revoked'
      if ((row !== undefined) !== (token.state === 'minted'))
        faults.push(`the token ${token.label} was ${token.state}, and is ${row ? 'there' : 'not there'}`)
    }
    for (const { label } of rows)
      if (!this.#tokens.some(token => token.label === label)) faults.push(`the token ${label} was never minted`)
    const tried = this.#tokens.filter(({ text }) => text)
    const { text, state, label } = tried[this.#dice.below(tried.length)] ?? {}
    if (!text) return faults
    const works = await createClient({ url, token: text })
      .call('GET /agents')
      .then(
        () => true,
        (error: unknown) => !(error instanceof Refusal && error.status === 401),
      )
    if (works !== (state === 'minted'))
      faults.push(`the token ${label} was ${state}, and ${works ? 'works' : 'does not work'}`)
    return faults
  }

  /** Commits to the main line. */
  commit(): void {
    const { workspace } = this.#place
    writeFileSync(join(workspace, 'main.txt'), `${Number(readFileSync(join(workspace, 'main.txt'), 'utf8')) + 1}\n`)
    inGit(workspace, 'commit', '-q', '-m', 'the main line moves', '--only', 'main.txt')
  }

  /** The faults in the person's uncommitted files. */
  ofPerson(files: readonly string[]): string[] {
    const { workspace } = this.#place
    const status = inGit(workspace, 'status', '--porcelain', '--', ...files)
    const staged = inGit(workspace, 'diff', '--cached', '--name-only').trim()
    return [
      ...(status === ' M mine.txt\nA  staged.txt\n?? loose.txt\n'
      || status === 'A  staged.txt\n M mine.txt\n?? loose.txt\n'
        ? []
        : [`git status says ${JSON.stringify(status)}`]),
      ...(staged === 'staged.txt' ? [] : [`staged is ${staged}`]),
    ]
  }
}
