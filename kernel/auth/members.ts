import type { Handlers } from '../../sdk/contract.js'
import type { AccessSession, Kernel } from '../../sdk/kernel.js'
import type { Book } from './book.js'
import { grant, invite, limit, remove, shownRoster, withdraw, type Edited } from './roster.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import type { Kept } from '../../sdk/node/files/kept.js'

type MemberCall = Extract<keyof Kernel, `kernel.members.${string}`>

/** The dependencies of the member calls, with callbacks for people whose access shrinks. */
export interface MembersOptions {
  readonly kept: Kept<Book>
  readonly now: () => number
  readonly sessions: () => readonly AccessSession[]
  /** Called when a person's access was reduced. */
  readonly shrunk: (email: string) => void
  /** Runs work that may remove sessions, then ends the removed ones. */
  readonly leaving: <T>(work: () => Promise<T>) => Promise<T>
}

/** The calls that grant and remove access. An edit takes effect, and ends open streams, once it is on the disk. */
export const kernelMemberCalls = ({
  kept,
  now,
  sessions,
  shrunk,
  leaving,
}: MembersOptions): Pick<Handlers<Kernel>, MemberCall> => {
  const edit = async (change: (book: Book) => Edited): Promise<{ ok: true }> => {
    let edited: Edited | undefined
    await kept.change(book => (edited = change(book)).book)
    failpoint('access.granted')
    edited?.shrunk.forEach(shrunk)
    return { ok: true }
  }
  return {
    'kernel.members.list': () => {
      const seen = Map.groupBy(sessions(), ({ email }) => email)
      return shownRoster(kept.value, email => seen.get(email)?.[0]?.lastSeenAt, now())
    },
    'kernel.members.grant': ({ email, by, ...given }) => edit(book => grant(book, email, given, by, now())),
    'kernel.members.limit': ({ people }) => edit(book => limit(book, people)),
    'kernel.members.moved': ({ email }) => edit(book => ({ book, shrunk: [email] })),
    'kernel.members.invite': async ({ by, ...asked }) => {
      let made: ReturnType<typeof invite> | undefined
      await kept.change(book => (made = invite(book, asked, by, now())).book)
      const {
        code,
        made: { id, expiresAt },
      } = made!
      return { id, code, expiresAt }
    },
    'kernel.members.remove': ({ email, invitation = '' }) =>
      leaving(async () => {
        await kept.change(book => (email === undefined ? withdraw(book, invitation, now()) : remove(book, email)))
        failpoint('access.removed')
        return { ok: true }
      }),
  }
}
