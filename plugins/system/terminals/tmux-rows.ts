import type { Session } from './backend.js'

/** The names of sessions; everything else in the folder is no socket of one. */
export const SESSION_NAME = /^(?:web|panel|agent|job|proc)-[A-Za-z0-9_-]+$/

/** The fields of a pane that a row is made of, as tmux names them. */
export const PANE_FIELDS = [
  'session_name',
  'pane_dead',
  'pane_dead_status',
  'pane_dead_signal',
  'pane_dead_time',
  'pane_pid',
  'window_activity',
  'pane_width',
  'pane_height',
  'pid',
  '@about',
] as const

/** A session, with its first process and that of its server. */
export interface TmuxRow extends Session {
  readonly leader: number
  readonly server: number
  /** Its terminal is closed, but tmux does not report the end of its program yet. */
  readonly closed: boolean
}

/** What is stored with a session. */
export interface AboutSession extends Pick<Session, 'label' | 'opened' | 'work'> {}

/** Reports a program that was ended by a signal as a shell does: 128 plus its number. */
export const paneExit = (status: string | undefined, signal: string | undefined): number =>
  status ? Number(status) : 128 + Number(signal)

/** A pane is dead as soon as its terminal is closed; how its program ended is known a moment later. */
export const hasEnded = (dead: string | undefined, status: string | undefined, signal: string | undefined): boolean =>
  dead === '1' && Boolean(status || signal)

/** Reads the row of a session; undefined if the session is none of the sandbox. */
export const rowOf = (values: readonly string[]): TmuxRow | undefined => {
  const row = Object.fromEntries(PANE_FIELDS.map((field, at) => [field, values[at] ?? '']))
  const name = row.session_name!
  if (!SESSION_NAME.test(name)) return undefined
  const running = !hasEnded(row.pane_dead, row.pane_dead_status, row.pane_dead_signal)
  const about = (row['@about'] ? JSON.parse(Buffer.from(row['@about'], 'base64url').toString()) : {}) as AboutSession
  return {
    ...about,
    name,
    running,
    leader: Number(row.pane_pid),
    server: Number(row.pid),
    closed: running && row.pane_dead === '1',
    activityAt: Number(row.window_activity) * 1000,
    cols: Number(row.pane_width),
    rows: Number(row.pane_height),
    ...(!running && {
      exitCode: paneExit(row.pane_dead_status, row.pane_dead_signal),
      endedAt: Number(row.pane_dead_time || 0) * 1000,
    }),
  }
}
