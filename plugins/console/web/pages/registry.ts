import type { FunctionComponent } from 'preact'
import type { Role } from '../../../../sdk/types.js'
import type { IconName } from '../ui/icons.js'

/** What a page gets: the parts of its address after its own name. */
export interface PageProps {
  readonly rest: readonly string[]
}

/** A page of the console: a chunk of its own, loaded when it is first shown. */
export interface ConsolePageEntry {
  /** The first part of its address. */
  readonly name: string
  readonly label: string
  readonly icon: IconName
  /** The least role that sees it. */
  readonly role: Role
  /** The call without which the page has nothing to show. */
  readonly needs: string
  /** Whether the navigation names it. */
  readonly listed: boolean
  readonly load: () => Promise<FunctionComponent<PageProps>>
}

const RANK: readonly Role[] = ['viewer', 'collaborator', 'maintainer', 'owner']

/** Whether a role is at least another one. */
export const reaches = (role: Role | undefined, least: Role): boolean =>
  role !== undefined && RANK.indexOf(role) >= RANK.indexOf(least)

/** Every page; the first one is shown where the address names none. */
export const PAGES: readonly ConsolePageEntry[] = [
  {
    name: 'fleet',
    label: 'Fleet',
    icon: 'fleet',
    role: 'viewer',
    needs: 'agents.list',
    listed: true,
    load: async () => (await import('./fleet/fleet-page.js')).FleetPage,
  },
  {
    name: 'c',
    label: 'Conversation',
    icon: 'fleet',
    role: 'viewer',
    needs: 'agents.transcript',
    listed: false,
    load: async () => (await import('./conversation/conversation-page.js')).ConversationPage,
  },
  {
    name: 'new',
    label: 'New conversation',
    icon: 'fleet',
    role: 'collaborator',
    needs: 'agent.run',
    listed: false,
    load: async () => (await import('./new/new-page.js')).NewPage,
  },
  {
    name: 'me',
    label: 'You',
    icon: 'people',
    role: 'viewer',
    needs: 'system.sessions',
    listed: true,
    load: async () => (await import('./me/me-page.js')).MePage,
  },
]
