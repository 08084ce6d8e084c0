import { refuse, type ChangedSides, type Context, type Host, type SidePair } from '../../sdk/index.js'
import type { DiffPair, DiffSource, DiffSourceName } from './contract.js'

type DiffHost = Pick<Host, 'call' | 'serves'>

/** Which groups serve a source; without them it is not there. */
const SERVED_BY = {
  working: 'git.sides',
  commit: 'git.sides',
  agent: 'agents.sides',
  checkpoint: 'history.sides',
  files: 'workspace.sides',
} as const

/** The fields that a source needs besides a path. */
const NEEDS: { readonly [source in DiffSourceName]: readonly (keyof DiffPair)[] } = {
  working: ['repo', 'side'],
  agent: ['repo', 'agent'],
  commit: ['repo', 'sha'],
  checkpoint: ['snapshot', 'scope'],
  files: ['before', 'after'],
}

const fieldOf = (pair: DiffPair, field: keyof DiffPair): string => {
  const value = pair[field]
  if (value !== undefined) return value
  const expected = `needed for the source ${pair.source}`
  return refuse('invalid', `${field}: ${expected}, found none`, { errors: [{ path: field, expected }] })
}

/** Asks the group that a source belongs to, for the caller. */
class Comparison {
  readonly #host: DiffHost
  readonly #context: Context

  constructor(host: DiffHost, context: Context) {
    this.#host = host
    this.#context = context
  }

  async checked(pair: DiffPair, fields: readonly (keyof DiffPair)[]): Promise<void> {
    for (const field of fields) fieldOf(pair, field)
    const { source } = pair
    if (!(await this.#host.serves(SERVED_BY[source])))
      refuse('unavailable', `comparing with the source ${source} is not served here: its group is not loaded`)
  }

  get options() {
    return { as: this.#context, signal: this.#context.signal }
  }
}

/** Writes both sides of what is asked for into a folder, each up to `most` bytes. */
export const sidesOf = async (
  host: DiffHost,
  pair: DiffPair,
  to: { readonly folder: string; readonly most: number },
  context: Context,
): Promise<SidePair> => {
  const { source, side, base, agent, against, from } = pair
  const comparison = new Comparison(host, context)
  await comparison.checked(pair, source === 'files' ? NEEDS.files : [...NEEDS[source], 'path'])
  const { options } = comparison
  const field = (name: keyof DiffPair) => fieldOf(pair, name)
  switch (source) {
    case 'working':
      return host.call('git.sides', { repo: field('repo'), side: side!, path: field('path'), ...to }, options)
    case 'commit':
      return host.call(
        'git.sides',
        {
          repo: field('repo'),
          sha: field('sha'),
          path: field('path'),
          ...(base !== undefined && { base }),
          ...(from !== undefined && { from }),
          ...to,
        },
        options,
      )
    case 'agent':
      return host.call('agents.sides', { id: agent!, repo: field('repo'), path: field('path'), ...to }, options)
    case 'checkpoint':
      return host.call(
        'history.sides',
        {
          id: field('snapshot'),
          scope: field('scope'),
          path: field('path'),
          ...(against !== undefined && { against }),
          ...to,
        },
        options,
      )
    case 'files':
      return host.call(
        'workspace.sides',
        { before: field('before'), after: field('after'), ...(agent !== undefined && { agent }), ...to },
        options,
      )
  }
}

/** The files that a comparison changed. */
export const changedIn = async (host: DiffHost, asked: DiffSource, context: Context): Promise<ChangedSides[]> => {
  const { source, side, base, agent, against } = asked
  if (source === 'files') {
    const expected = 'working, agent, commit or checkpoint'
    return refuse('invalid', `source: expected ${expected}, found files`, { errors: [{ path: 'source', expected }] })
  }
  const comparison = new Comparison(host, context)
  await comparison.checked(asked, NEEDS[source])
  const { options } = comparison
  const field = (name: keyof DiffPair) => fieldOf(asked, name)
  const ask = () => {
    switch (source) {
      case 'working':
        return host.call('git.changed', { repo: field('repo'), side: side! }, options)
      case 'commit':
        return host.call(
          'git.changed',
          { repo: field('repo'), sha: field('sha'), ...(base !== undefined && { base }) },
          options,
        )
      case 'agent':
        return host.call('agents.changed', { id: agent!, repo: field('repo') }, options)
      case 'checkpoint':
        return host.call(
          'history.changed',
          { id: field('snapshot'), scope: field('scope'), ...(against !== undefined && { against }) },
          options,
        )
    }
  }
  return (await ask()).changes
}
