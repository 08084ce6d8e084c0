import { readFileSync } from 'node:fs'
import type { CDPSession, Page } from 'playwright-core'

/** What Chromium measures of a page itself, by its names. */
type MetricName = 'TaskDuration' | 'ScriptDuration' | 'Nodes' | 'JSHeapUsedSize'

/** What a page used, times in milliseconds. */
export interface PageUse {
  /** The processor time of its main thread: other processes of the machine do not change it. */
  readonly thread: number
  /** The part of that in scripts. */
  readonly script: number
}

/** Measures the main thread of a page by its processor time. */
export const metersOf = async (page: Page) => {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  const read = async (): Promise<{ readonly [name in MetricName]: number }> => {
    const { metrics } = await session.send('Performance.getMetrics')
    return Object.fromEntries(metrics.map(({ name, value }) => [name, value])) as { [name in MetricName]: number }
  }
  return {
    session,
    used: async (work: () => Promise<unknown>): Promise<PageUse> => {
      const before = await read()
      await work()
      const after = await read()
      return {
        thread: (after.TaskDuration - before.TaskDuration) * 1000,
        script: (after.ScriptDuration - before.ScriptDuration) * 1000,
      }
    },
    /** The elements in the document, and the bytes of the heap after what is not used was collected. */
    size: async (): Promise<{ readonly elements: number; readonly heap: number }> => {
      await session.send('HeapProfiler.collectGarbage')
      return {
        elements: Number(await page.evaluate('document.querySelectorAll("*").length')),
        heap: (await read()).JSHeapUsedSize,
      }
    },
  }
}

/** Slows the main thread of a page down. */
export const throttle = (session: CDPSession, times: number): Promise<unknown> =>
  session.send('Emulation.setCPUThrottlingRate', { rate: times })

/** Whether a selector and a text are in the document, as an expression of the page. */
const isShown = (selector: string, text: string): string =>
  `[...document.querySelectorAll(${JSON.stringify(selector)})]
    .some(one => (one.shadowRoot ?? one).textContent.includes(${JSON.stringify(text)}))`

/** Waits until a selector and a text are drawn, and returns the time since `began`: by default that of the document. */
export const drawn = async (page: Page, selector: string, text: string, began = '0', change = ''): Promise<number> =>
  Number(
    await page.evaluate(`new Promise(resolve => {
      const began = ${began}
      const look = () => {
        if (${isShown(selector, text)}) requestAnimationFrame(() => resolve(performance.now() - began))
        else requestAnimationFrame(look)
      }
      { ${change} }
      look()
    })`),
  )

/** The time from a change of the page until a selector and a text are drawn. */
export const drawnAfter = (page: Page, change: string, selector: string, text: string): Promise<number> =>
  drawn(page, selector, text, 'performance.now()', change)

/** Begins to load an address in a new document: its clock is at 0 then. */
export const openAt = async (page: Page, url: string): Promise<void> => {
  await page.goto('about:blank')
  await page.goto(url, { waitUntil: 'commit' })
}

/**
 * The part of the frames of the screen that came more than 50 ms after the one before, and how long each typed
 * character took until it was drawn, in milliseconds.
 */
export const watchPage = async (page: Page) => {
  await page.evaluate(`(() => {
    const seen = { frames: 0, late: 0, typed: [], last: performance.now() }
    window.seen = seen
    const frame = now => {
      seen.frames += 1
      if (now - seen.last > 50) seen.late += 1
      seen.last = now
      requestAnimationFrame(frame)
    }
    requestAnimationFrame(frame)
    new PerformanceObserver(list => {
      for (const one of list.getEntries()) if (one.name === 'keydown') seen.typed.push(one.duration)
    }).observe({ type: 'event', durationThreshold: 16 })
  })()`)
  return async (): Promise<{ readonly late: number; readonly typed: number[] }> => {
    const { frames, late, typed } = JSON.parse(String(await page.evaluate('JSON.stringify(window.seen)')))
    return { late: late / frames, typed }
  }
}

/** The connections that are open to a port of this machine. */
export const connectionsTo = (port: number): number =>
  ['tcp', 'tcp6'].reduce(
    (sum, table) =>
      sum
      + readFileSync(`/proc/net/${table}`, 'utf8')
        .split('\n')
        .slice(1)
        .filter(line => {
          const [, local = '', , state] = line.trim().split(/\s+/)
          return state === '01' && Number.parseInt(local.split(':')[1]!, 16) === port
        }).length,
    0,
  )

/** A script whose turn has at least this number of frames: each answer, of prose and code, has two. */
export const framesScript = (frames: number): string =>
  [
    `repeat ${Math.ceil(frames / 2)} say`,
    '| The **heron** number $n stands in `shallow/water.ts` and waits for a',
    '| fish that is slow',
    '|',
    '| ~~~ts',
    '| const waited = $n // days',
    '| ~~~',
  ].join('\n')

/** A script whose turn has this number of frames at about 200 a second: each answer has two. */
export const streamScript = (frames: number): string =>
  Array.from({ length: frames / 2 }, (_, at) =>
    at % 5 === 4
      ? `say\n| The **heron** of line ${at} waits:\n|\n| ~~~ts\n| const fish = ${at}\n| ~~~\nwait 8`
      : `say The **heron** waits in \`shallow-${at}.ts\`\nwait 8`,
  ).join('\n')
