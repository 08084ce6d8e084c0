import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import type { Test } from 'tap'
import { inGit, spawnDaemon } from '../daemon.js'
import { makeFleet } from '../repositories/fleet.js'
import { framesOf, runTurn } from '../turns.js'
import {
  drawn,
  drawnAfter,
  framesScript,
  metersOf,
  openAt,
  streamScript,
  throttle,
  watchPage,
  type PageUse,
} from './budgets.js'
import { findDaemonSocket, goTo, ownBrowser, loginLink, openTab } from './console.js'

/** How long something took by the clock, and what it used of the page's main thread. */
export interface Took extends PageUse {
  readonly wall: number
}

/** What a page did while it showed a turn. */
export interface Streamed extends Took {
  readonly frames: number
  readonly elements: number
  readonly heap: number
  /** The part of the frames of the screen that came more than 50 ms after the one before. */
  readonly late: number
  /** How long each typed character took until it was drawn, in milliseconds. */
  readonly typed: readonly number[]
  /** The same of an empty page beside it: what is late there is late by the machine. */
  readonly empty: Pick<Streamed, 'late' | 'typed'>
}

const BIG = 1_040_000

/** A running daemon with 1,000 conversations, in whose console budgets are measured. */
export const budgetWorld = async (t: Pick<Test, 'teardown'>, folder: string) => {
  const { workspace, data } = await makeFleet(folder, 1000, ['shared'])
  const line = (n: number, word: string) => `export const value${n} = '${word} of line ${n}'\n`
  let big = ''
  for (let n = 0; big.length < BIG; n++) big += line(n, 'text')
  mkdirSync(join(workspace, 'big'))
  writeFileSync(join(workspace, 'big', 'large.ts'), big)
  inGit(workspace, 'add', '-A')
  inGit(workspace, 'commit', '-q', '-m', 'a large file')
  const daemon = await spawnDaemon(t, { workspace, data })
  const { client } = daemon
  const browser = await ownBrowser(t)
  const { page } = await openTab(browser, daemon)
  await page.goto(await loginLink({ socket: findDaemonSocket(data) }))
  await page.locator('[data-ready=yes]').waitFor()
  const { session, used, size } = await metersOf(page)

  /** Measures the time until something is drawn, of a page whose main thread is this many times slower. */
  const measured = async (work: () => Promise<number>, times = 1): Promise<Took> => {
    await throttle(session, times)
    let wall = 0
    const use = await used(async () => {
      wall = await work()
    })
    await throttle(session, 1)
    return { wall, ...use }
  }
  /** The same of a navigation: another page begins to count its time anew. */
  const navigated = async (place: string, selector: string, text: string, times = 1): Promise<Took> => {
    await throttle(session, times)
    await openAt(page, `${daemon.url}/${place}`)
    return measured(() => drawn(page, selector, text), times)
  }
  // The first board of a daemon is made from its records.
  await drawn(page, '.fleet-title', 'conversation')
  return {
    daemon,
    page,
    size,
    /** A navigation to the board of 1,000. */
    fleet: (times?: number) => navigated('#/fleet', '.fleet-title', 'conversation', times),
    /** Starts a turn that goes on after 10,000 frames, and returns how many it has. */
    longRun: async (): Promise<number> => {
      const prompt = `${framesScript(10_000)}\nsay the last row\nwait 600000`
      await client.call('POST /agent', { conversationId: 'long', prompt })
      const watched = framesOf(client, 'long')
      await watched.until(frame => frame.kind === 'delta' && frame.text.includes('the last row'))
      return watched.seen.length
    },
    /** A navigation to its last row. */
    run: (times?: number) => navigated('#/c/long', '.prose', 'the last row', times),
    /** From one conversation to another. */
    switching: async (): Promise<Took> => {
      await goTo(page, '#/c/c-0005')
      await page.getByText('row 5 of answer 5').first().waitFor()
      return measured(() => drawnAfter(page, 'location.hash = "#/c/c-0006"', '.prose', 'row 5 of answer 6'))
    },
    /** Changes the large file in a private copy. */
    largeFile: async (): Promise<void> => {
      const change = "sed -i 's/text of line \\(.*\\)00/words of line \\100/' big/large.ts"
      await runTurn(client, 'large', `run ${change}`, { isolated: true })
    },
    /** From the list of changed files to its comparison. */
    review: async (): Promise<Took> => {
      await goTo(page, '#/c/large')
      const place = JSON.stringify('#/c/large/changes/root/big%2Flarge.ts')
      return measured(() => drawnAfter(page, `location.hash = ${place}`, '.diff-host', 'words of line'))
    },
    /** A turn of this number of frames at about 200 a second, while a person types. */
    stream: async (id: string, frames: number): Promise<Streamed> => {
      const { run } = await client.call('POST /agent', { conversationId: id, prompt: streamScript(frames) })
      await goTo(page, `#/c/${id}`)
      const composer = page.getByLabel('Message to the agent')
      await composer.waitFor()
      const empty = await browser.newPage()
      await empty.setContent('<textarea></textarea>')
      await empty.locator('textarea').focus()
      const [seen, seenEmpty] = [await watchPage(page), await watchPage(empty)]
      let going = true
      const ended = framesOf(client, id, { run })
        .all()
        .finally(() => {
          going = false
        })
      const began = performance.now()
      let count = 0
      const use = await used(async () => {
        await composer.focus()
        const type = async (one: Page) => {
          while (going) await one.keyboard.type('heron ', { delay: 60 })
        }
        await Promise.all([type(page), type(empty)])
        count = (await ended).length
      })
      const wall = performance.now() - began
      const [shown, beside] = [await seen(), await seenEmpty()]
      await empty.close()
      return { ...use, wall, frames: count, ...(await size()), ...shown, empty: beside }
    },
  }
}

/** What the console may need, in milliseconds where nothing else is said. */
export const BUDGETS = {
  fleet: 1_000,
  fleetSlowed: 3_000,
  run: 1_000,
  runSlowed: 2_500,
  busy: 0.6,
  script: 4_000,
  late: 0.04,
  elements: 3_000,
  heap: 40 * 1024 * 1024,
  typing: 60,
  switching: 150,
  review: 1_000,
} as const
