import { createHash } from 'node:crypto'
import type { ReportedException, ReportedFrame, StoredEvent } from '../stored.js'

const NEWEST = 8
const DEFAULT = /^\{\{\s*default\s*\}\}$/

/** A part of a file name that a build makes: a hash of 6 to 64 hexadecimal digits or at least 8 mixed characters. */
const BUILD_HASH = /(?<=[._-])(?:[0-9a-f]{6,64}|(?=[\w-]*\d)(?=[\w-]*[A-Za-z])\w{8,64})(?=[._-]|$)/gi
const VERSION = /(?<=[/@._-]|^)v?\d+(?:\.\d+)+(?:-[\w.]+)?(?=[/._-]|$)/gi
const DOCUMENT = /^[a-z][a-z0-9+.-]*:\/+[^/]*/i

/** A file name without what differs between builds, versions and machines. */
export const stableFile = (file: string): string =>
  file
    .replace(/[?#].*$/, '')
    .replace(DOCUMENT, '')
    .replace(VERSION, '*')
    .split('/')
    .map(part => part.replace(BUILD_HASH, '*').replace(/^[0-9a-f]{16,64}$/i, '*'))
    .join('/')

const frameKey = ({ module, file = '', function: name = '' }: ReportedFrame): string =>
  `${module === undefined ? stableFile(file) : stableFile(module)}:${name}`

/** A message with numbers, ids, quoted values and addresses replaced. */
export const stableMessage = (message: string): string =>
  message
    .slice(0, 1000)
    .replace(/[a-z][a-z0-9+.-]*:\/\/\S+/gi, '<address>')
    .replace(/[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g, '<address>')
    .replace(/(["'`])(?:(?!\1).){1,200}\1/g, '<value>')
    .replace(/\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/gi, '<id>')
    .replace(/\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b/g, '<address>')
    .replace(/\b(?:0x)?(?=[0-9a-f]*\d)[0-9a-f]{6,}\b/gi, '<id>')
    .replace(/\d+(?:\.\d+)?/g, '<number>')

/** The frames that tell a fault: the program's own, else all. */
const telling = (exceptions: readonly ReportedException[]): ReportedFrame[] => {
  const frames = exceptions.flatMap(each => each.frames)
  const own = frames.filter(each => each.own)
  return (own.length > 0 ? own : frames).slice(0, NEWEST)
}

const defaultParts = ({ exceptions, message = '' }: Pick<StoredEvent, 'exceptions' | 'message'>): string[] => {
  if (exceptions.length === 0) return ['message', stableMessage(message)]
  const types = exceptions.map(({ type = '' }) => type)
  const frames = telling(exceptions)
  if (frames.length > 0) return ['frames', ...types, ...frames.map(frameKey)]
  return ['values', ...types, ...exceptions.map(({ value = '' }) => stableMessage(value))]
}

/** The id of the issue that an event belongs to. */
export const issueIdOf = (
  reporter: number,
  event: Pick<StoredEvent, 'exceptions' | 'message'>,
  fingerprint: readonly string[] | undefined,
): string => {
  const own = defaultParts(event)
  const parts = fingerprint?.length ? fingerprint.flatMap(part => (DEFAULT.test(part) ? own : [part])) : own
  const hash = createHash('sha256').update(JSON.stringify([reporter, ...parts]))
  return `iss_${hash.digest('hex').slice(0, 20)}`
}
