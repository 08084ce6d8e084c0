import { refuse } from '../../../sdk/index.js'
import { GitFailure } from '../../../sdk/node/programs/git.js'
import { verdictOf } from './repo-git.js'

type Handler = (input: { readonly repo?: string }, ...more: readonly unknown[]) => unknown

/** The exit code of git for arguments that it does not know, which are a fault of this program. */
const USAGE = 129

/** Refuses with git's reason if an error is git's refusal to work on a repository; other errors are thrown again. */
const refuseDamaged = (error: unknown, repo: string): never => {
  if (!(error instanceof GitFailure) || error.code === USAGE || !/^(?:fatal|error): /m.test(error.stderr)) throw error
  return refuse(
    'unprocessable',
    `${repo} cannot be read: ${verdictOf(error.stderr)}; \`git fsck\` in a terminal says more`,
    { cause: error },
  )
}

/**
 * Handlers that refuse with git's reason where a repository is damaged, wherever git notices it.
 *
 * What a handler expects of git, such as a conflict, it answers itself.
 */
export const refusingDamaged = <Served extends object>(handlers: Served): Served =>
  Object.fromEntries(
    Object.entries(handlers as { readonly [call: string]: Handler }).map(([call, handler]) => [
      call,
      (input: { readonly repo?: string }, ...more: readonly unknown[]) => {
        const answer = handler(input, ...more)
        if (!(answer instanceof Promise)) return answer
        return answer.catch((error: unknown) => refuseDamaged(error, input.repo ?? 'the repository'))
      },
    ]),
    // The keys and the types of the handlers stay the same.
  ) as Served
