import type { ReportedException, ReportedFrame } from '../stored.js'
import type { GivenObject } from './envelope.js'
import { isObject } from './envelope.js'
import type { Scrubber } from './scrub.js'

const MOST_FRAMES = 100
const MOST_EXCEPTIONS = 10
const MOST_LINES = 7
const MOST_LINE = 500
const LIBRARY = /(?:^|\/)(?:node_modules|site-packages|dist-packages)\/|^node:|^internal\/|^<anonymous>$|\/lib\/python3/

export const reportedText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

const wholeOf = (value: unknown, least: number): number | undefined =>
  typeof value === 'number' && Number.isInteger(value) && value >= least && value < 2 ** 31 ? value : undefined

/** The entries of a list, which some programs send as `{ values: [...] }`. */
export const reportedList = (value: unknown): GivenObject[] => {
  const list = Array.isArray(value) ? value : isObject(value) && Array.isArray(value.values) ? value.values : []
  return list.filter(isObject)
}

const linesOf = (value: unknown, scrub: Scrubber, from: number, to?: number): string[] | undefined => {
  if (!Array.isArray(value)) return undefined
  const lines = value.filter(each => typeof each === 'string').slice(from, to)
  return lines.length > 0 ? lines.map(line => scrub.text(line, MOST_LINE)) : undefined
}

const frameOf = (given: GivenObject, scrub: Scrubber): ReportedFrame => {
  const file = reportedText(given.abs_path) ?? reportedText(given.filename)
  const name = reportedText(given.function)
  const module = reportedText(given.module)
  const [line, column] = [wholeOf(given.lineno, 1), wholeOf(given.colno, 0)]
  const source = reportedText(given.context_line)
  const before = linesOf(given.pre_context, scrub, -MOST_LINES)
  const after = linesOf(given.post_context, scrub, 0, MOST_LINES)
  return {
    own: typeof given.in_app === 'boolean' ? given.in_app : !LIBRARY.test(file ?? module ?? ''),
    ...(file !== undefined && { file: scrub.text(file, 500) }),
    ...(name !== undefined && { function: scrub.text(name, 200) }),
    ...(module !== undefined && { module: scrub.text(module, 200) }),
    ...(line !== undefined && { line }),
    ...(column !== undefined && { column }),
    ...(before && { before }),
    ...(source !== undefined && { source: scrub.text(source, MOST_LINE) }),
    ...(after && { after }),
  }
}

/** The exceptions of an event, the outermost first, each with its newest frames first. */
export const exceptionsOf = (event: GivenObject, scrub: Scrubber): ReportedException[] =>
  reportedList(event.exception)
    .slice(-MOST_EXCEPTIONS)
    .reverse()
    .map(given => {
      const { type, value, mechanism, stacktrace } = given
      const frames = isObject(stacktrace) && Array.isArray(stacktrace.frames) ? stacktrace.frames.filter(isObject) : []
      const handled = isObject(mechanism) ? mechanism.handled : undefined
      return {
        ...(reportedText(type) !== undefined && { type: scrub.text(reportedText(type)!, 200) }),
        ...(reportedText(value) !== undefined && { value: scrub.text(reportedText(value)!, 2_000) }),
        ...(typeof handled === 'boolean' && { handled }),
        frames: frames
          .slice(-MOST_FRAMES)
          .reverse()
          .map(frame => frameOf(frame, scrub)),
      }
    })
